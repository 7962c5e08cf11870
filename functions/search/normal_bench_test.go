package search

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func BenchmarkHash(b *testing.B) {
	q := query{Geo: area{Mode: "city", City: "Kabul"}, SortKey: "recommended"}
	n := q.normal(upstream.List, nil, upstream.Page{Limit: 20})
	b.ReportAllocs()
	for b.Loop() {
		hashOf(n, "ps-AF", "AFN")
	}
}
