package session

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

var emptyKeys redisclient.Keys // for tests without Redis

// heapInUse returns the bytes in use after a garbage collection.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A request may have 16 KiB of headers. The caches of thousands of requests must hold copies: a
// substring pins the whole string. Serial: the test measures the heap.
func TestStore_CachesDoNotRetainRequestHeaders(t *testing.T) {
	const requests, header = 500, 15_000
	keys, long := parseRing(t, newKey), strings.Repeat("x", header)
	r := New(emptyKeys, keys, keys, nil, time.Now)
	before := heapInUse()
	for n := range requests {
		request, err := r.ParseRequest(&http.Request{Header: http.Header{
			"User-Agent": {"Mozilla/5.0 (" + strconv.Itoa(n) + ")" + long},
			"Cookie":     {CookieName + "=" + mintID(keys, time.Now()) + "; another=" + long},
		}})
		if err != nil || request.ID == "" {
			t.Fatalf("got id %q, error %v, want a genuine id", request.ID, err)
		}
		s := r.newSession(request, request.ID, false)
		s.Locale = "ps-AF" // differs from the headers, so rememberPreferences caches it
		r.rememberPreferences(request, s)
	}
	if got, limit := (heapInUse()-before)/requests, header/4; got > limit {
		t.Errorf("the caches hold %d bytes of each request, want at most %d", got, limit)
	}
	runtime.KeepAlive(r)
}
