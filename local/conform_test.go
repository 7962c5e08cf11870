package main

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

var api = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join("..", "api", "consumer.openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// conforms holds an answer of the public API against its description.
func conforms(t *testing.T, req *http.Request, res *http.Response, body []byte) {
	t.Helper()
	router, err := api()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := router.FindRoute(req)
	if err != nil {
		t.Fatalf("%s is not in the API: %v", req.URL, err)
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: params},
		Status:                 res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("the answer breaks the API description: %v\n%s", err, body)
	}
}
