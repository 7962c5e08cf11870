package detail

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDetailETag_MatchAnswers304(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{detailURL, availabilityURL + "&locale=en&currency=USD"} {
		t.Run(path, func(t *testing.T) {
			for _, encoding := range []string{"gzip", "identity"} {
				first := h.send("GET", path, "Accept-Encoding", encoding)
				tag := first.Header.Get("ETag")
				if first.StatusCode != 200 || len(tag) < 20 || tag[0] != '"' {
					t.Fatalf("%s: got %d, ETag %s; want 200 with an ETag", encoding, first.StatusCode, tag)
				}
				for _, method := range []string{"GET", "HEAD"} {
					for _, condition := range []string{tag, "W/" + tag, "*", `"other", ` + tag, `"a,b",W/"c",W/` + tag} {
						a := h.send(method, path, "Accept-Encoding", encoding, "If-None-Match", condition)
						if a.StatusCode != 304 || len(a.Text) != 0 || a.Header.Get("Content-Length")+a.Header.Get("Content-Encoding") != "" {
							t.Errorf("%s %s, %s: got %d, %d bytes, %v; want 304 without a body", method, path, condition, a.StatusCode, len(a.Text), a.Header)
						}
						for _, name := range []string{"ETag", "Cache-Control", "Vary"} {
							if a.Header.Get(name) != first.Header.Get(name) {
								t.Errorf("%s %s: got %s %q; want %q", method, path, name, a.Header.Get(name), first.Header.Get(name))
							}
						}
					}
					for _, condition := range []string{`"other"`, "", "nonsense", `"` + tag} {
						if a := h.send(method, path, "Accept-Encoding", encoding, "If-None-Match", condition); a.StatusCode != 200 {
							t.Errorf("%s %s, %s: got status %d; want 200", method, path, condition, a.StatusCode)
						}
					}
				}
			}
			h.get(path, "If-None-Match", "*") // get validates the 304 against the OpenAPI document
		})
	}
}

func TestDetailETag_DiffersPerEncoding(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	zipped, plain := h.send("GET", detailURL, "Accept-Encoding", "gzip, br"), h.send("GET", detailURL)
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("got headers %v and %v; want gzip and another ETag", zipped.Header, plain.Header)
	}
	reader, err := gzip.NewReader(strings.NewReader(zipped.Text))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(reader)
	if err != nil || string(body) != plain.Text {
		t.Errorf("decompressed: got %d bytes, error %v; want the %d plain bytes", len(body), err, len(plain.Text))
	}
	if a := h.send("GET", detailURL, "Accept-Encoding", "gzip", "If-None-Match", plain.Header.Get("ETag")); a.StatusCode != 200 {
		t.Errorf("ETag of the other encoding: got %d; want 200", a.StatusCode)
	}
}

func TestDetailHead_EqualsGetWithoutBody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{detailURL, availabilityURL} {
		t.Run(path, func(t *testing.T) {
			h.mustGet(path)
			get, head := h.send("GET", path), h.send("HEAD", path)
			for _, r := range []*response{get, head} {
				r.Header.Del("Server-Timing")
				r.Header.Del("X-Request-Id")
			}
			if head.StatusCode != 200 || len(head.Text) != 0 || fmt.Sprint(head.Header) != fmt.Sprint(get.Header) {
				t.Errorf("got %d, %d bytes, headers\n%v\nwant 200, 0 bytes,\n%v", head.StatusCode, len(head.Text), head.Header, get.Header)
			}
		})
	}
	if a := h.send("HEAD", "/hotels/"+propertyID(99)); a.StatusCode != 404 {
		t.Errorf("got status %d; want 404", a.StatusCode)
	}
}

func TestDetailETag_ChangesOnlyWithResponse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.mustGet(detailURL).Header.Get("ETag")
	if got := h.newInstance().mustGet(detailURL).Header.Get("ETag"); got != first {
		t.Errorf("another instance: got %s; want %s", got, first)
	}
	h.Advance(61 * time.Second) // the refreshed rates have another capture time
	renewed := h.mustGet(detailURL)
	if tag := renewed.Header.Get("ETag"); tag == first || renewed.cacheState() != "HIT" {
		t.Errorf("with new rates: got %s; want an ETag other than %s", tag, first)
	}
	h.upstreams.Fail("pricing")
	h.Advance(61 * time.Second)
	stale := h.mustGet(detailURL, "If-None-Match", renewed.Header.Get("ETag"))
	if stale.StatusCode != http.StatusOK || !stale.CheapestRateSnapshot.IsStale {
		t.Errorf("with stale rates: got %d %s; want 200", stale.StatusCode, stale.Text)
	}
	if a := h.get(detailURL, "If-None-Match", stale.Header.Get("ETag")); a.StatusCode != 304 || a.Header.Get("Cache-Control") != cacheControlShort {
		t.Errorf("ETag of the stale page: got %d %s; want 304", a.StatusCode, a.Header.Get("Cache-Control"))
	}
}
