package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCacheControl_PrivateSharedAndDegraded(t *testing.T) {
	t.Parallel()
	const vary = "Accept-Language, X-Currency, Accept-Encoding"
	for _, c := range []struct {
		rule    string
		mark    func(http.ResponseWriter)
		control string
		vary    string
	}{
		{"private without Shared", func(http.ResponseWriter) {}, "private, no-store", ""},
		{"private", MarkPrivate, "private, no-store", ""},
		{"shared by its URL", func(w http.ResponseWriter) { MarkShared(w, true, false) }, "public, max-age=15, s-maxage=300, stale-while-revalidate=60", "Accept-Encoding"},
		{"shared by its headers", func(w http.ResponseWriter) { MarkShared(w, false, false) }, "public, max-age=15, s-maxage=300, stale-while-revalidate=60", vary},
		{"degraded and shared", func(w http.ResponseWriter) { MarkShared(w, true, true) }, "public, max-age=15, s-maxage=15", "Accept-Encoding"},
		{"shared with a cookie is private", func(w http.ResponseWriter) {
			MarkShared(w, true, false)
			http.SetCookie(w, &http.Cookie{Name: "gms_id", Value: "x"})
		}, "private, no-store", "Accept-Encoding"},
	} {
		f := newTestFunction(t, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
			c.mark(w)
			return okHandler(w, r)
		})
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		if got := w.Header().Get("Cache-Control"); got != c.control {
			t.Errorf("%s: %q, want %q", c.rule, got, c.control)
		}
		if got := w.Header().Get("Vary"); got != c.vary {
			t.Errorf("%s: varies by %q, want %q", c.rule, got, c.vary)
		}
	}
}

func TestWriteJSON_EncodesDeterministically(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	err := WriteJSON(w, http.StatusCreated, struct {
		Listings []int          `json:"listings"`
		Names    map[string]int `json:"names"`
		Hint     *string        `json:"hint,omitzero"`
	}{Names: map[string]int{"c": 3, "a": 1, "b": 2}})
	if err != nil || w.Code != 201 || w.Body.String() != `{"listings":[],"names":{"a":1,"b":2,"c":3}}` {
		t.Errorf("%v: %d %s", err, w.Code, w.Body)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Content-Length") != "43" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestWriteJSON_UnencodableValueIsInternalProblem(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "GET /x", func(w http.ResponseWriter, _ *http.Request) error {
		return WriteJSON(w, http.StatusOK, []any{1, func() {}})
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if readProblem(t, w); w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
}

func TestWriteJSON_DoesNotPoolLargeBuffers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxPooledBytes+1)
	for range 3 {
		w := httptest.NewRecorder()
		if err := WriteJSON(w, http.StatusOK, large); err != nil || w.Body.Len() != len(large)+2 {
			t.Fatalf("%v, %d bytes", err, w.Body.Len())
		}
		if err := WriteJSON(httptest.NewRecorder(), http.StatusOK, 1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestValidateText_Codes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "Kabul": "", "کابل": "", "می\u200cخوانم": "", "\u200fمكة\u200e": "", "🏨🏨🏨🏨🏨🏨🏨🏨": "", "12345678": "", "a\ufffdb": "",
		"123456789": "too-long", "🏨🏨🏨🏨🏨🏨🏨🏨🏨": "too-long", "a\x00b": "control-character", "a\nb": "control-character", "a\tb": "control-character",
		"a\x7f": "control-character", "a\u0085b": "control-character", "\x1b[31m": "control-character", "a\xffb": "utf-8", "\xef": "utf-8",
		strings.Repeat("a", 1<<16): "too-long",
	} {
		got := ""
		if field := ValidateText("note", in, 8); field != nil {
			got = field.Code
			if field.Field != "note" || field.Detail == "" {
				t.Errorf("%q: %+v", in, field)
			}
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", in, got, want)
		}
	}
}
