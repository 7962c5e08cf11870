package upstream

import (
	"context"
	"fmt"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
)

// No response bytes cause a panic, and every accepted response conforms to the contract, so that no
// other data can reach a guest.
func FuzzFetch_AcceptedResponsesKeepContract(f *testing.F) {
	schemas := map[string]*openapi3.Schema{}
	for _, x := range exchanges {
		doc := loadContract(f, x.contract)
		f.Add(contractExample(f, doc, x.operation, x.example))
		for _, item := range doc.Paths.Map() {
			for _, op := range item.Operations() {
				schemas[op.OperationID] = op.Responses.Value("200").Value.Content["application/json"].Schema.Value
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, x := range exchanges {
			got, err := x.call(t.Context(), newCannedUpstreams(t, body))
			if ReasonOf(err) == BadResponse {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
			if err := schemas[x.operation].VisitJSON(asJSON(t, got)); err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
		}
	})
}

// searchPage returns a search response with n hits of about 750 bytes each.
func searchPage(b *testing.B, n int) []byte {
	hit := asJSON(b, searchExample(b)).(map[string]any)["hits"].([]any)[0].(map[string]any)
	hits := make([]any, n)
	for i := range hits {
		copied := map[string]any{}
		for k, v := range hit {
			copied[k] = v
		}
		copied["propertyId"] = fmt.Sprintf("ppt_01KA2X5T7QJ0V3M8N4R6B9C%03d", i)
		hits[i] = copied
	}
	body, err := json.Marshal(map[string]any{"resultCount": n, "hits": hits})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkFetch_Parse20Hits measures decoding and checking a response.
func BenchmarkFetch_Parse20Hits(b *testing.B) {
	body := searchPage(b, 20)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var r searchResponse
		if err := json.Unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
		if err := r.validate(Page{Limit: 20}); err != nil || len(r.Hits) != 20 {
			b.Fatalf("got %d hits, %v, want 20", len(r.Hits), err)
		}
	}
}

// BenchmarkQuery_20Hits measures a whole call without a network: encoding, breaker, timers,
// reading, decoding.
func BenchmarkQuery_20Hits(b *testing.B) {
	u := newCannedUpstreams(b, searchPage(b, 20))
	q, ctx := cityQuery(), WithCaller(context.Background(), caller)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := u.Search.Query(ctx, q); err != nil || len(r.Hits) != 20 {
			b.Fatalf("got %d hits, %v, want 20", len(r.Hits), err)
		}
	}
}
