package cache

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// discardResponse is a ResponseWriter that discards the body.
type discardResponse struct{ header http.Header }

func (d discardResponse) Header() http.Header         { return d.header }
func (d discardResponse) WriteHeader(int)             {}
func (d discardResponse) Write(b []byte) (int, error) { return len(b), nil }

func benchmarkWrite(b *testing.B, accept string) {
	e, err := NewEntry(200, listOf(23_000), []string{"tnt_a"}, nil)
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
		w := discardResponse{http.Header{"Vary": {"Accept-Encoding"}}}
		if err := e.Write(w, r, tail); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(raw)), "stored-B")
}

// BenchmarkWrite_Gzip measures the way from the bytes of a GET to a compressed response.
func BenchmarkWrite_Gzip(b *testing.B) { benchmarkWrite(b, "gzip, deflate, br") }

// BenchmarkWrite_Identity measures the same for a client without gzip.
func BenchmarkWrite_Identity(b *testing.B) { benchmarkWrite(b, "") }

// BenchmarkGetOrLoad_Hit measures a hit with the GET; BenchmarkGetOrLoad_RedisGetOnly measures only
// the GET.
func BenchmarkGetOrLoad_Hit(b *testing.B) {
	p := newProcess(b, redisAddr(b), newClock())
	loader := Loader{TTL: time.Minute, Load: func(context.Context) (Loaded, error) {
		e, err := NewEntry(200, listOf(23_000), nil, nil)
		return Loaded{Entry: e}, err
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.GetOrLoad(b.Context(), testKey, nil, loader); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetOrLoad_RedisGetOnly(b *testing.B) {
	p := newProcess(b, redisAddr(b), newClock())
	e, err := NewEntry(200, listOf(23_000), nil, nil)
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

// BenchmarkNewEntry measures the compression at a miss.
func BenchmarkNewEntry(b *testing.B) {
	body := listOf(23_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewEntry(200, body, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
