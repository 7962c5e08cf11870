package functest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// User agents of browsers.
const (
	Firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	IPhone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
)

// Result is a response with its body.
type Result struct {
	*http.Response
	Text string // the body
	ProblemBody
}

// ProblemBody holds members of a problem response.
type ProblemBody struct {
	Code      string
	Retriable bool
	Errors    []struct{ Field, Code, Detail string }
}

// SessionCookie returns the session id set by the response, or "".
func (a *Result) SessionCookie() string {
	for _, c := range a.Cookies() {
		if c.Name == "gms_id" {
			return c.Value
		}
	}
	return ""
}

// Decode decodes the body, and fails the test if the body is not JSON.
func (a *Result) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Text), v); err != nil {
		t.Fatalf("%v in %s", err, a.Text)
	}
}

// Do sends a request with a session cookie, or as a new guest for "", and checks the response as
// Send does. headers are pairs of name and value; the value "" removes a default header of a
// browser.
func (h *Harness) Do(method, path, cookie, body string, headers ...string) *Result {
	h.T.Helper()
	r := httptest.NewRequest(method, h.BasePath+path, strings.NewReader(body))
	r.Header.Set("User-Agent", Firefox)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if cookie != "" {
		r.Header.Set("Cookie", "gms_id="+cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		if value == "" && r.Header.Get(name) != "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	return h.Send(r)
}

// MustDo is Do, and fails the test for any other status.
func (h *Harness) MustDo(status int, method, path, cookie, body string, headers ...string) *Result {
	h.T.Helper()
	a := h.Do(method, path, cookie, body, headers...)
	if a.StatusCode != status {
		h.T.Fatalf("%s %s: %d %s", method, path, a.StatusCode, a.Text)
	}
	return a
}

// Send sends a request through the pipeline and checks the rules for every response: it matches the
// OpenAPI document, and an error is a problem with Cache-Control: no-store and without cookies.
// Safe for concurrent use.
func (h *Harness) Send(r *http.Request) *Result {
	h.T.Helper()
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	a := &Result{Response: w.Result(), Text: w.Body.String()}
	if h.APIDocument != "" {
		ValidateResponse(h.T, h.APIDocument, r, a)
	}
	cache := a.Header.Get("Cache-Control")
	if a.StatusCode >= 400 {
		if r.Method != http.MethodHead {
			if err := json.Unmarshal([]byte(a.Text), &a.ProblemBody); err != nil {
				h.T.Errorf("%s %s: %v in %s", r.Method, r.URL, err, a.Text)
			}
		}
		if cache != "no-store" || a.Header.Get("Set-Cookie") != "" {
			h.T.Errorf("%s %s: an error response with headers %v, want no-store and no cookie", r.Method, r.URL, a.Header)
		}
		return a
	}
	if h.Personal && cache != "private, no-store" {
		h.T.Errorf("%s %s: a personal response with headers %v, want private, no-store", r.Method, r.URL, a.Header)
	}
	return a
}

// ReplaceInBody replaces parts of a body: oldnew are pairs of an old and a new part. It fails the
// test if the body lacks an old part.
func ReplaceInBody(t testing.TB, body string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(body, oldnew[i]) {
			t.Fatalf("the body has no %s", oldnew[i])
		}
		body = strings.Replace(body, oldnew[i], oldnew[i+1], 1)
	}
	return body
}
