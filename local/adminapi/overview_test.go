package adminapi

import (
	"net/http"
	"os"
	"testing"
	"time"
)

func TestPlaces_SuggestWithSearchQuery(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	code, answer := b.call(t, http.MethodGet, "/_local/places?q=%D9%87%D8%B1&limit=1", "") // هر
	places, _ := answer["places"].([]any)
	if code != http.StatusOK || len(places) != 1 {
		t.Fatalf("%d %v", code, answer)
	}
	if herat := places[0].(map[string]any); herat["query"] != "Herat" || herat["kind"] != "city" || herat["country"] != "AF" {
		t.Errorf("got %v, want the city Herat", herat)
	}
	if _, answer := b.call(t, http.MethodGet, "/_local/places?q=qqq", ""); len(answer["places"].([]any)) != 0 {
		t.Errorf("got %v, want no places", answer)
	}
	for _, limit := range []string{"0", "501", "x"} {
		if code, answer := b.call(t, http.MethodGet, "/_local/places?limit="+limit, ""); code != http.StatusUnprocessableEntity {
			t.Errorf("limit %s: got %d %v, want 422", limit, code, answer)
		}
	}
}

func TestOverview_ReportsRequestsBreakersAndOutbox(t *testing.T) {
	t.Parallel()
	m := startMessaging(t, newStatus(http.StatusOK), "{}")
	b := newHarness(t, m)
	record := `{"time":"` + time.Now().UTC().Format(time.RFC3339Nano) + `","httpRequest":{"requestUrl":"/bff/search","status":200},"cache":"HIT"}
{"upstream":"pricing","from":"closed","to":"open"}
`
	if err := os.WriteFile(b.requestLogPath, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	code, answer := b.call(t, http.MethodGet, "/_local/inside", "")
	hits := 0.0
	for _, slot := range answer["slots"].([]any) {
		hits += slot.(map[string]any)["hit"].(float64)
	}
	breakers := answer["breakers"].(map[string]any)
	if code != http.StatusOK || hits != 1 || breakers["pricing"] != "open" || breakers["search"] != "closed" || len(breakers) != 4 {
		t.Errorf("got %d, %v hits, %v, want 200, 1 hit, pricing open of 4", code, hits, breakers)
	}
	if outbox, _ := answer["outbox"].(map[string]any); outbox["unsent"] != 0.0 || outbox["parked"] != 0.0 || outbox["oldestAgeSeconds"] != 0.0 {
		t.Errorf("outbox: got %v, want zeros", answer["outbox"])
	}
}
