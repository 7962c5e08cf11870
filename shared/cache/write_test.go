package cache

import (
	"bytes"
	stdgzip "compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func respond(t testing.TB, e *Entry, method, accept string, tail []byte, prepare func(http.Header)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	w := httptest.NewRecorder()
	if prepare != nil {
		prepare(w.Header())
	}
	if err := e.Write(w, r, tail); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWrite_BothEncodingsContainBodyAndTail(t *testing.T) {
	for _, bodySize := range []int{0, 1, 23_000} {
		for _, tailSize := range []int{0, 80, 0xffff, 0x10000, 150_000} {
			t.Run(fmt.Sprintf("%d+%d", bodySize, tailSize), func(t *testing.T) {
				body, tail := listOf(bodySize), bytes.Repeat([]byte("}"), tailSize)
				e, err := NewEntry(200, body, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				whole := string(body) + string(tail)
				if got := respond(t, &e, "GET", "", tail, nil).Body.String(); got != whole {
					t.Errorf("identity: got %d bytes, want %d", len(got), len(whole))
				}
				w := respond(t, &e, "GET", "gzip", tail, nil)
				z, err := stdgzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(z) // up to the end, so the reader verifies checksum and size
				if err != nil || string(got) != whole {
					t.Errorf("gzip: got %d bytes, want %d: %v", len(got), len(whole), err)
				}
				if n := w.Result().ContentLength; n != int64(w.Body.Len()) && w.Body.Len() != 0 {
					t.Errorf("got Content-Length %d for a body of %d bytes", n, w.Body.Len())
				}
			})
		}
	}
}

func TestWrite_RealServerServesStoredEntry(t *testing.T) {
	e := sampleEntry(t)
	stored, err := decode(e.encode())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := stored.Write(w, r, []byte(`,"n":1}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for _, gzipped := range []bool{true, false} {
		// decompresses by itself
		client := http.Client{Transport: &http.Transport{DisableCompression: !gzipped}}
		for _, method := range []string{"GET", "HEAD"} {
			r, _ := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			want := map[string]string{"GET": `{"listings":[1,2,3],"n":1}`}[method]
			if err != nil || string(b) != want || resp.Uncompressed != (gzipped && method == "GET") {
				t.Errorf("%s: got %q, decompressed %t, %v, want %q", method, b, resp.Uncompressed, err, want)
			}
			if ct := resp.Header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("%s: got Content-Type %q", method, ct)
			}
		}
	}
}

func TestWrite_HeadHasHeadersOfGet(t *testing.T) {
	e := sampleEntry(t)
	for _, accept := range []string{"gzip", ""} {
		get := respond(t, &e, "GET", accept, []byte("}"), nil)
		head := respond(t, &e, "HEAD", accept, []byte("}"), nil)
		if head.Body.Len() != 0 {
			t.Errorf("Accept-Encoding %q: got a HEAD body of %d bytes", accept, head.Body.Len())
		}
		if fmt.Sprint(head.Header()) != fmt.Sprint(get.Header()) || head.Header().Get("Content-Length") != strconv.Itoa(get.Body.Len()) {
			t.Errorf("Accept-Encoding %q: got HEAD headers %v, want %v", accept, head.Header(), get.Header())
		}
	}
}

func TestWrite_NegotiatesGzip(t *testing.T) {
	e := sampleEntry(t)
	for accept, want := range map[string]bool{
		"":                             false,
		"gzip":                         true,
		"GZip":                         true,
		"x-gzip":                       true,
		"gzip, deflate, br, zstd":      true,
		"br;q=1.0, gzip;q=0.8, *;q=.1": true,
		" deflate , gzip ; q=1 ":       true,
		"gzip;q=0.001":                 true,
		"gzip;q=0":                     false,
		"gzip;Q=0.000":                 false,
		"gzip; q=0, *":                 false,
		"*":                            true,
		"*;q=0":                        false,
		"identity":                     false,
		"br":                           false,
		"gzipped":                      false,
		";;,,=":                        false,
	} {
		t.Run(accept, func(t *testing.T) {
			w := respond(t, &e, "GET", accept, nil, nil)
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
				t.Errorf("got gzip %t, want %t", got, want)
			}
		})
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["Accept-Encoding"] = []string{"br", "gzip"}
	if !acceptsGzip(r.Header) {
		t.Error("acceptsGzip ignores the second line of the header")
	}
}

func TestWrite_KeepsCallerHeaders(t *testing.T) {
	e := sampleEntry(t)
	for have, want := range map[string]string{
		"":                                 "Accept-Encoding",
		"Accept-Language, X-Currency":      "Accept-Language, X-Currency; Accept-Encoding",
		"Accept-Language, accept-encoding": "Accept-Language, accept-encoding",
	} {
		t.Run(have, func(t *testing.T) {
			w := respond(t, &e, "GET", "gzip", nil, func(h http.Header) {
				if have != "" {
					h.Set("Vary", have)
				}
				h.Set("Content-Type", "application/problem+json")
			})
			if got := strings.Join(w.Header()["Vary"], "; "); got != want {
				t.Errorf("got Vary %q, want %q", got, want)
			}
			if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("got Content-Type %q, want application/problem+json", ct)
			}
		})
	}
}

func TestWrite_CorruptBodyWritesNothing(t *testing.T) {
	e := sampleEntry(t)
	e.crc++
	w := httptest.NewRecorder()
	err := e.Write(w, httptest.NewRequest("GET", "/", nil), nil)
	if !errors.Is(err, errCorrupt) || len(w.Header()) != 0 || w.Body.Len() != 0 {
		t.Errorf("got error %v, headers %v and %d bytes, want only an error", err, w.Header(), w.Body.Len())
	}
}

// listOf returns n bytes of JSON, as repetitive as a list of hotels.
func listOf(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"propertyId":"ppt_01J%023d","name":"Hotel %d","city":"Medina","rating":{"value":%d.%d,"count":%d},`,
			i*7919, i, i%5, i%10, i*31%977)
		fmt.Fprintf(&b, `"thumbnail":{"url":"https://img.example/%x.jpg","alt":"The house %d"},"amenities":["wifi","parking"]},`,
			sha256.Sum256(b.Bytes()), i)
	}
	return b.Bytes()[:n]
}
