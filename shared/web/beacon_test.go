package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestDecodeBeacon_AcceptsTextPlainAndNoMediaType(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]int{
		"application/json":                  0,
		"application/json; charset=utf-8":   0,
		"text/plain":                        0,
		"text/plain;charset=UTF-8":          0,
		"":                                  0,
		"text/plain; charset=utf-16":        http.StatusBadRequest,
		"text/html":                         http.StatusBadRequest,
		"application/x-www-form-urlencoded": http.StatusBadRequest,
		"multipart/form-data; boundary=x":   http.StatusBadRequest,
		"application/octet-stream":          http.StatusBadRequest,
		"text/plain; charset":               http.StatusBadRequest,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"a":1}`))
		if media != "" {
			r.Header.Set("Content-Type", media)
		}
		var into struct {
			A int `json:"a"`
		}
		err := DecodeBeacon(r, &into)
		if want == 0 && (err != nil || into.A != 1) || want != 0 && (err == nil || problem.FromError(err).Kind.Status != want) {
			t.Errorf("%q: %v", media, err)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"a":1,"b":2}`))
	if err := DecodeBeacon(r, &struct{}{}); err == nil || problem.FromError(err).Kind != problem.ValidationFailed {
		t.Errorf("as strict as any other body: %v", err)
	}
	r = httptest.NewRequest("POST", "/", strings.NewReader(`{}`))
	r.Header.Set("Content-Encoding", "gzip")
	if err := DecodeBeacon(r, &struct{}{}); err == nil {
		t.Error("compressed")
	}
}
