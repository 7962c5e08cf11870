package challenge

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// What a request costs beside Redis: one that is above human and sends a solution, and one that is refused.
func BenchmarkVerify(b *testing.B) {
	r := New(keys, ring(b), &countingProvider{}, at(noon))
	d := &harness{Service: r}
	solved := d.puzzle()
	b.Run("prove", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := r.Verify(b.Context(), nil, session, solved, guest); !p.Solved {
				b.Fatal(p)
			}
		}
	})
	b.Run("prove nothing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Verify(b.Context(), nil, session, "", guest)
		}
	})
	b.Run("refuse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Problem(guest, 16)
		}
	})
}

// What Redis does for it: a pipeline of one GET, and a pipeline of one script.
func BenchmarkVerify_RedisPipeline(b *testing.B) {
	d := newHarness(b, redistest.New(b))
	proof := d.Verify(b.Context(), nil, session, d.puzzle(), guest)
	b.Run("peek", func(b *testing.B) {
		for b.Loop() {
			pipe := d.rdb.Pipeline()
			d.Enqueue(b.Context(), pipe, session)
			lua.Exec(b.Context(), pipe)
		}
	})
	b.Run("remember", func(b *testing.B) {
		for b.Loop() {
			pipe := d.rdb.Pipeline()
			d.EnqueueSave(b.Context(), pipe, session, proof)
			if err := lua.Exec(b.Context(), pipe); err != nil {
				b.Fatal(err)
			}
		}
	})
}
