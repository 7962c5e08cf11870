package challenge

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// BenchmarkVerify measures the cost without Redis of a request with a solution, without a token,
// and rejected.
func BenchmarkVerify(b *testing.B) {
	r := New(keys, ring(b), &countingProvider{}, at(noon))
	d := &harness{Service: r}
	solved := d.puzzle()
	b.Run("solution", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := r.Verify(b.Context(), nil, session, solved, guest); !p.Solved {
				b.Fatal(p)
			}
		}
	})
	b.Run("no token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Verify(b.Context(), nil, session, "", guest)
		}
	})
	b.Run("problem", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Problem(guest, 16)
		}
	})
}

// BenchmarkVerify_RedisPipeline measures a pipeline of one GET and a pipeline of one script.
func BenchmarkVerify_RedisPipeline(b *testing.B) {
	d := newHarness(b, redistest.New(b))
	proof := d.Verify(b.Context(), nil, session, d.puzzle(), guest)
	b.Run("enqueue", func(b *testing.B) {
		for b.Loop() {
			pipe := d.rdb.Pipeline()
			d.Enqueue(b.Context(), pipe, session)
			lua.Exec(b.Context(), pipe)
		}
	})
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			pipe := d.rdb.Pipeline()
			d.EnqueueSave(b.Context(), pipe, session, proof)
			if err := lua.Exec(b.Context(), pipe); err != nil {
				b.Fatal(err)
			}
		}
	})
}
