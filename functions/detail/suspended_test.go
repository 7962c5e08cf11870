package detail

import (
	"strings"
	"testing"
)

func TestDetail_SuspendedTenantAnswers404(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	days := hotelPath + "/availability?from=2026-12-01&to=2026-12-02"
	h.mustGet(detailURL)
	h.mustGet(days)
	unknown := h.get("/hotels/" + propertyID(99))
	h.Suspend(tenantID(1))
	h.RoundTrips.TakeCount()
	for _, path := range []string{detailURL, days, hotelPath + "?locale=ru&currency=AFN"} {
		t.Run(path, func(t *testing.T) { // two cached entries and one that is not cached
			a := h.get(path)
			if a.StatusCode != 404 || a.Code != unknown.Code || strings.Contains(a.Text, "Hotel One") {
				t.Errorf(`got %d %s; want status 404, code = %v, body without "Hotel One"`, a.StatusCode, a.Text, unknown.Code)
			}
			if a := h.get(path, "If-None-Match", "*"); a.StatusCode != 404 {
				t.Errorf("with If-None-Match: got %d; want 404", a.StatusCode)
			}
		})
	}
	if err := h.Tenants().Reinstate(t.Context(), tenantID(1)); err != nil {
		t.Fatal(err)
	}
	h.mustGet(detailURL)
	h.mustGet(days)
}

func TestDetail_SuspendedTenantIsNotSimilar(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	before := h.mustGet(detailURL)
	h.Suspend(tenantID(3))
	h.mustGet(detailURL) // reloads the set of suspended tenants
	h.RoundTrips.TakeCount()
	a := h.mustGet(detailURL)
	if a.cacheState() != "HIT" || len(a.SimilarProperties) != 3 || strings.Contains(a.Text, tenantID(3)) || a.Header.Get("Cache-Control") != cacheControlFull {
		t.Errorf(`got %s %s; want X-Cache = "HIT", len(SimilarProperties) = 3, body without %v, Cache-Control = %v`, a.cacheState(), a.Text, tenantID(3), cacheControlFull)
	}
	if n := h.RoundTrips.TakeCount(); n != 1 {
		t.Errorf("got %d Redis round trips; want 1", n)
	}
	if a.Header.Get("ETag") == before.Header.Get("ETag") {
		t.Error("got the same ETag for another body")
	}
	if again := h.mustGet(detailURL); again.Header.Get("ETag") != a.Header.Get("ETag") {
		t.Error("got another ETag for the same body")
	}
	for _, n := range []int{2, 4, 5} { // 5 is tenant 0
		h.Suspend(tenantID(n))
	}
	h.mustGet(detailURL)
	if a = h.mustGet(detailURL); a.SimilarProperties != nil || strings.Contains(a.Text, "similarProperties") {
		t.Errorf(`got %s; want SimilarProperties = nil, body without "similarProperties"`, a.Text)
	}
}

func TestDetail_SuspensionAppliesWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Suspend(tenantID(1))
	h.Redis.Stop()
	if a := h.get(detailURL); a.StatusCode != 404 {
		t.Errorf("got %d %s; want status 404", a.StatusCode, a.Text)
	}
}
