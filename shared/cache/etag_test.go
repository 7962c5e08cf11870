package cache

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func writeShared(t testing.TB, e *Entry, method, accept string, ifNoneMatch ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	r.Header.Set("Accept-Encoding", accept)
	r.Header["If-None-Match"] = ifNoneMatch
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "public, max-age=15")
	if err := e.WriteShared(w, r); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWriteShared_EqualBodiesShareETagPerEncoding(t *testing.T) {
	one, same := sampleEntry(t), sampleEntry(t)
	same.FreshUntil = same.FreshUntil.Add(1)
	stored, err := decode(one.encode())
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewEntry(200, []byte(`{"listings":[1,2,4]`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name, e := range map[string]*Entry{"one": &one, "same": &same, "stored": stored, "other": &other} {
		t.Run(name, func(t *testing.T) {
			for _, accept := range []string{"gzip", "identity"} {
				tag := writeShared(t, e, "GET", accept).Header().Get("ETag")
				if len(tag) < 24 || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
					t.Errorf("%s: got %q, want a strong ETag", accept, tag)
				}
				body := accept + map[bool]string{true: " other"}[name == "other"]
				if before, ok := seen[tag]; ok && before != body {
					t.Errorf("bodies %s and %s have the same ETag %s", before, body, tag)
				}
				seen[tag] = body
			}
		})
	}
	if len(seen) != 4 {
		t.Errorf("got ETags %v, want 4", seen)
	}
}

func TestWriteShared_MatchingETagReturns304(t *testing.T) {
	e := sampleEntry(t)
	tag := writeShared(t, &e, "GET", "gzip").Header().Get("ETag")
	plain := writeShared(t, &e, "GET", "identity").Header().Get("ETag")
	for name, c := range map[string]struct {
		lines []string
		want  int
	}{
		"no header":                   {nil, 200},
		"empty":                       {[]string{""}, 200},
		"same tag":                    {[]string{tag}, 304},
		"same tag, weak":              {[]string{"W/" + tag}, 304},
		"asterisk":                    {[]string{"*"}, 304},
		"asterisk with blanks":        {[]string{" *\t"}, 304},
		"other tag":                   {[]string{`"another"`}, 200},
		"tag of other encoding":       {[]string{plain}, 200},
		"in a list":                   {[]string{`"a", W/"b",` + tag + ` , "c"`}, 304},
		"in a list without blanks":    {[]string{`"a",W/` + tag}, 304},
		"in a list with empty items":  {[]string{`, ,"a",,` + tag}, 304},
		"after a tag with a comma":    {[]string{`"a,b", ` + tag}, 304},
		"only inside another tag":     {[]string{`"x` + strings.Trim(tag, `"`) + `"`}, 200},
		"on the second line":          {[]string{`"a"`, tag}, 304},
		"without quotes":              {[]string{strings.Trim(tag, `"`)}, 200},
		"without its second quote":    {[]string{strings.TrimSuffix(tag, `"`)}, 200},
		"after malformed text":        {[]string{`nonsense, ` + tag}, 200},
		"with a small w":              {[]string{"w/" + tag}, 200},
		"only a quote":                {[]string{`"`}, 200},
		"an asterisk as a tag":        {[]string{`"*"`}, 200},
		"an asterisk in a list":       {[]string{`"a", *`}, 200},
		"a very long list without it": {[]string{strings.Repeat(`"a",`, 4000)}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				w := writeShared(t, &e, method, "gzip", c.lines...)
				if w.Code != c.want {
					t.Errorf("%s: got status %d, want %d", method, w.Code, c.want)
				}
				h := w.Header()
				if h.Get("ETag") != tag || h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") == "" {
					t.Errorf("%s: got headers %v, want ETag %s, Vary and Cache-Control", method, h, tag)
				}
				if w.Code == 304 && (w.Body.Len() > 0 || h.Get("Content-Length")+h.Get("Content-Type")+h.Get("Content-Encoding") != "") {
					t.Errorf("%s: got 304 with %d bytes and headers %v, want no body", method, w.Body.Len(), h)
				}
				if w.Code == 200 && (method == "GET") != (w.Body.Len() > 0) {
					t.Errorf("%s: got %d bytes", method, w.Body.Len())
				}
			}
		})
	}
}

func TestWriteShared_HeadHasHeadersOfGet(t *testing.T) {
	e := sampleEntry(t)
	get, head := writeShared(t, &e, "GET", "gzip"), writeShared(t, &e, "HEAD", "gzip")
	if fmt.Sprint(get.Header()) != fmt.Sprint(head.Header()) || head.Body.Len() != 0 {
		t.Errorf("HEAD: got headers %v, want %v and no body", head.Header(), get.Header())
	}
}

func TestWriteShared_CorruptBodyHasNoETag(t *testing.T) {
	e := sampleEntry(t)
	e.crc++
	w := httptest.NewRecorder()
	if err := e.WriteShared(w, httptest.NewRequest(http.MethodGet, "/", nil)); err == nil || len(w.Header()) != 0 {
		t.Errorf("got error %v and headers %v, want an error and no headers", err, w.Header())
	}
}
