package functest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// ValidateResponse fails when an answer is not what an OpenAPI document, the path of a file, says of its request. A body that
// is not sent, or is compressed, is not looked at; status and headers are.
func ValidateResponse(t testing.TB, document string, r *http.Request, a *Result) {
	t.Helper()
	router, err := loadRouter(document)
	if err != nil {
		t.Error(err)
		return
	}
	asked := r
	if r.Method == http.MethodHead { // described as GET
		asked = r.Clone(context.Background())
		asked.Method = http.MethodGet
	}
	route, params, err := router.FindRoute(asked)
	if errors.Is(err, routers.ErrMethodNotAllowed) && a.StatusCode == http.StatusMethodNotAllowed {
		return
	}
	if err != nil {
		t.Errorf("%s %s is not in the API: %v", r.Method, r.URL, err)
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, Route: route, PathParams: params},
		Status:                 a.StatusCode, Header: a.Header, Body: io.NopCloser(strings.NewReader(a.Text)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   r.Method == http.MethodHead || a.Header.Get("Content-Encoding") != "",
		},
	})
	if err != nil {
		t.Errorf("the answer breaks the API description: %v\n%s", err, a.Text)
	}
}

var routerCache = struct {
	sync.Mutex
	read map[string]routers.Router
}{read: map[string]routers.Router{}}

// loadRouter reads a document once.
func loadRouter(document string) (routers.Router, error) {
	routerCache.Lock()
	defer routerCache.Unlock()
	if router := routerCache.read[document]; router != nil {
		return router, nil
	}
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true // the private doors share schemas with the public ones
	doc, err := loader.LoadFromFile(document)
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	routerCache.read[document] = router
	return router, nil
}
