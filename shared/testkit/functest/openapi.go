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

// ValidateResponse fails the test if a response does not match the OpenAPI document in a file. It
// checks status, headers and body, but not a compressed body or the body of a response to HEAD.
func ValidateResponse(t testing.TB, document string, r *http.Request, a *Result) {
	t.Helper()
	router, err := loadRouter(document)
	if err != nil {
		t.Error(err)
		return
	}
	request := r
	if r.Method == http.MethodHead { // the document describes GET only
		request = r.Clone(context.Background())
		request.Method = http.MethodGet
	}
	route, params, err := router.FindRoute(request)
	if errors.Is(err, routers.ErrMethodNotAllowed) && a.StatusCode == http.StatusMethodNotAllowed {
		return
	}
	if err != nil {
		t.Errorf("%s %s is not in the OpenAPI document: %v", r.Method, r.URL, err)
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: route, PathParams: params},
		Status:                 a.StatusCode, Header: a.Header, Body: io.NopCloser(strings.NewReader(a.Text)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   r.Method == http.MethodHead || a.Header.Get("Content-Encoding") != "",
		},
	})
	if err != nil {
		t.Errorf("the response does not match the OpenAPI document: %v\n%s", err, a.Text)
	}
}

var routerCache = struct {
	sync.Mutex
	read map[string]routers.Router
}{read: map[string]routers.Router{}}

// loadRouter reads a document, once per test process.
func loadRouter(document string) (routers.Router, error) {
	routerCache.Lock()
	defer routerCache.Unlock()
	if router := routerCache.read[document]; router != nil {
		return router, nil
	}
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true // the internal document refers to schemas of the public document
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
