package web

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const apiFile = "../../api/consumer.openapi.yaml"

// nextHandler responds to requests that the page does not serve.
var nextHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })

func request(h http.Handler, method, url string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestPage_ServesOnlyItsPaths(t *testing.T) {
	t.Parallel()
	h := New(nextHandler, "", apiFile)
	for url, media := range map[string]string{
		"/":                           "text/html; charset=utf-8",
		"/book?h=token":               "text/html; charset=utf-8",
		"/docs":                       "text/html; charset=utf-8",
		"/docs/consumer.openapi.yaml": "application/yaml",
		"/js/app.js":                  "text/javascript; charset=utf-8",
		"/css/base.css":               "text/css; charset=utf-8",
		"/icon.svg":                   "image/svg+xml",
		"/third_party/README.md":      "text/markdown; charset=utf-8",
		"/third_party/vazirmatn/vazirmatn-arabic-wght-normal.woff2": "font/woff2",
	} {
		res := request(h, http.MethodGet, url)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != media {
			t.Errorf("%s: %d %s", url, res.StatusCode, res.Header.Get("Content-Type"))
		}
		if head := request(h, http.MethodHead, url); head.StatusCode != http.StatusOK || head.Header.Get("Etag") != res.Header.Get("Etag") {
			t.Errorf("HEAD %s: %d", url, head.StatusCode)
		}
		// a proxy may weaken the ETag or send several
		for _, known := range []string{"%s", "W/%s", `"another", %s`} {
			known = fmt.Sprintf(known, res.Header.Get("Etag"))
			if again := request(h, http.MethodGet, url, "If-None-Match", known); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s again, %s: %d", url, known, again.StatusCode)
			}
		}
		post := request(h, http.MethodPost, url)
		if post.StatusCode != http.StatusMethodNotAllowed || post.Header.Get("Allow") != "GET, HEAD" || post.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("POST %s: %d, allow %q", url, post.StatusCode, post.Header.Get("Allow"))
		}
	}
	for _, url := range []string{"/index.html", "/book.html", "/js", "/js/", "/js/../js/app.js", "/../web.go", "//js/app.js", "/nothing", "/bff/consumer/v1/session", "/docs/"} {
		if res := request(h, http.MethodGet, url); res.StatusCode != http.StatusTeapot {
			t.Errorf("%s is answered by the page: %d", url, res.StatusCode)
		}
	}
}

func TestPage_SecurityHeadersForbidExternalSources(t *testing.T) {
	t.Parallel()
	h := New(nextHandler, "", apiFile)
	for _, url := range []string{"/", "/book", "/docs", "/js/app.js"} {
		header := request(h, http.MethodGet, url).Header
		policy := header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: %s is not in %q", url, part, policy)
			}
		}
		if scripts, _, _ := strings.Cut(policy, "style-src"); strings.Contains(scripts, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: %q", url, policy)
		}
		if header.Get("Referrer-Policy") != "no-referrer" || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v", url, header)
		}
	}
}

// externalURL matches URLs. Browsers do not request the URLs of XML namespaces.
var externalURL = regexp.MustCompile(`https?://[^\s"'<>)]+`)

func TestStaticFiles_ReferenceNoExternalHost(t *testing.T) {
	t.Parallel()
	read := 0
	err := fs.WalkDir(os.DirFS("static"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "third_party" {
				return fs.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(filepath.Join("static", name))
		if err != nil {
			return err
		}
		read++
		for _, found := range externalURL.FindAllString(string(text), -1) {
			if !strings.HasPrefix(found, "http://www.w3.org/") {
				t.Errorf("%s: %s", name, found)
			}
		}
		if lines := strings.Count(string(text), "\n"); lines > 400 {
			t.Errorf("%s has %d lines", name, lines)
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Fatalf("%d files: %v", read, err)
	}
}

var (
	textEntry   = regexp.MustCompile(`(?:"([^"]+)"|(\w+)): "((?:[^"\\]|\\.)*)"`)
	placeholder = regexp.MustCompile(`\{\w+\}`)
)

// readTexts returns the texts of a language, by key.
func readTexts(t *testing.T, language string) map[string]string {
	t.Helper()
	source, err := os.ReadFile("static/js/texts/" + language + ".js")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range textEntry.FindAllStringSubmatch(string(source), -1) {
		key := m[1] + m[2]
		if _, twice := all[key]; twice {
			t.Errorf("%s: %s is there twice", language, key)
		}
		all[key] = m[3]
	}
	return all
}

func TestTexts_CompleteInEveryLanguage(t *testing.T) {
	t.Parallel()
	english := readTexts(t, "en")
	if len(english) < 100 {
		t.Fatalf("%d texts", len(english))
	}
	for _, language := range []string{"ps", "fa", "ar", "ur", "ru", "tg", "fr"} {
		all := readTexts(t, language)
		for key, text := range english {
			theirs, there := all[key]
			if !there || theirs == "" {
				t.Errorf("%s has no %s", language, key)
				continue
			}
			for _, value := range placeholder.FindAllString(text, -1) {
				// Arabic has words for one and two instead of digits.
				if !strings.Contains(theirs, value) && !(language == "ar" && strings.HasSuffix(key, ".one")) {
					t.Errorf("%s: %s is without %s: %s", language, key, value, theirs)
				}
			}
		}
	}
}

func TestPage_RereadsFilesFromFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	h := New(nextHandler, folder, apiFile)
	if res := request(h, http.MethodGet, "/"); res.StatusCode != http.StatusTeapot {
		t.Fatalf("an empty folder: %d", res.StatusCode)
	}
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Body.String() != text {
			t.Errorf("%q, want %q", w.Body, text)
		}
	}
}
