package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

var capturedAt = time.Date(2026, 11, 20, 10, 49, 0, 0, time.UTC)

// runningSandbox is a served sandbox with the real clients. Every response is validated against the
// contract.
type runningSandbox struct {
	*Sandbox
	*upstream.Upstreams
	urls map[string]string
}

func startSandbox(t *testing.T, data *dataset.Dataset) runningSandbox {
	t.Helper()
	s := New(data, func() time.Time { return capturedAt })
	r := runningSandbox{Sandbox: s, urls: map[string]string{}}
	for name, file := range map[string]string{"search": "search-aggregation", "pricing": "pricing", "property": "property", "theme": "theme-config"} {
		server := httptest.NewServer(validateResponses(t, file, s.Upstreams[name]))
		t.Cleanup(server.Close)
		r.urls[name] = server.URL
	}
	transport := upstream.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	var err error
	r.Upstreams, err = upstream.New(upstream.Config{
		SearchURL: r.urls["search"], PricingURL: r.urls["pricing"], PropertyURL: r.urls["property"], ThemeURL: r.urls["theme"],
		Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// validateResponses fails the test if a successful response breaks the contract.
func validateResponses(t *testing.T, file string, next http.Handler) http.Handler {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join("..", "..", "shared", "upstream", "contracts", file+".openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())

		route, params, err := router.FindRoute(r)
		if err != nil {
			return // not a route of the contract; the test checks the status itself
		}
		out := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options},
			Status:                 rec.Code, Header: rec.Header(), Options: options,
		}
		out.SetBodyBytes(rec.Body.Bytes())
		if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	})
}

// referenceData is the data set of real accommodations, a file outside the repository.
func referenceData(t testing.TB) *dataset.Dataset {
	t.Helper()
	data, err := loadReference()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no reference data:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var loadReference = sync.OnceValues(func() (*dataset.Dataset, error) {
	dir := os.Getenv("SHARED_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	return dataset.Load(filepath.Join(dir, "hotels", "osm-accommodations.jsonl"))
})
