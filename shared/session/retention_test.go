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

// heapInUse is how many bytes are in use once the garbage is gone.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A request may have 16 KiB of header fields. What an instance keeps of thousands of them must be its own copy: a part of a
// string keeps the whole.
func TestStore_CachesDoNotRetainRequestHeaders(t *testing.T) {
	const requests, header = 500, 15_000
	keys, long := parseRing(t, newKey), strings.Repeat("x", header)
	r := New(redisclient.Keys{}, keys, keys, nil, time.Now)
	before := heapInUse()
	for n := range requests {
		req := &http.Request{Header: http.Header{
			"User-Agent": {"Mozilla/5.0 (" + strconv.Itoa(n) + ")" + long},
			"Cookie":     {CookieName + "=" + mintID(keys, time.Now()) + "; another=" + long},
		}}
		v, err := r.ParseRequest(req)
		if err != nil || v.ID == "" {
			t.Fatalf("%q, %v", v.ID, err)
		}
		s := r.newSession(v, v.ID, false)
		s.Locale = "ps-AF" // not what its headers say, so a hint is kept
		r.rememberPreferences(v, s)
	}
	if each := (heapInUse() - before) / requests; each > header/4 {
		t.Errorf("%d bytes are kept of each request", each)
	}
	runtime.KeepAlive(r)
}
