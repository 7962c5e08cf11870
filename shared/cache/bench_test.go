package cache

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// discard is a response that costs nothing to write.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

func benchmarkWrite(b *testing.B, accept string) {
	e, err := Pack(200, listOf(23_000), []string{"tnt_a"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	raw := e.encode()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", accept)
	tail := []byte(`,"searchSessionId":"srs_01J00000000000000000000000","degraded":[]}`)
	b.ReportAllocs()
	for b.Loop() {
		e, err := decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		w := discard{http.Header{"Vary": {"Accept-Encoding"}}}
		if err := e.Write(w, r, tail); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(raw)), "stored-B")
}

// The bytes of a GET, already here, to a compressed answer.
func BenchmarkHitWriteGzip(b *testing.B) { benchmarkWrite(b, "gzip, deflate, br") }

// The same for a client that takes no gzip.
func BenchmarkHitWriteIdentity(b *testing.B) { benchmarkWrite(b, "") }

// One GET, and what Do makes of it; BenchmarkGet is the GET alone.
func BenchmarkDoHit(b *testing.B) {
	p := newProcess(b, redisAddr(b), newClock())
	recipe := Recipe{TTL: time.Minute, Fill: func(context.Context) (Filled, error) {
		e, err := Pack(200, listOf(23_000), nil, nil)
		return Filled{Entry: e}, err
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Do(b.Context(), testKey, nil, recipe); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	p := newProcess(b, redisAddr(b), newClock())
	e, err := Pack(200, listOf(23_000), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	p.rdb.Set(b.Context(), testKey, e.encode(), 0)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.rdb.Get(b.Context(), testKey).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// What a miss pays to be a cheap hit later.
func BenchmarkPack(b *testing.B) {
	body := listOf(23_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Pack(200, body, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
