package detail

import (
	"strings"
	"testing"
)

func TestASuspendedTenantsHotelIsNotThere(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	h.ok(inURL)
	h.ok(days)
	unknown := h.get("/hotels/" + propertyID(99))
	h.Suspend(tenantOf(1))
	h.Trips.Take()
	for _, path := range []string{inURL, days, address + "?locale=ru&currency=AFN"} { // kept, kept, never made
		a := h.get(path)
		if a.StatusCode != 404 || a.Code != unknown.Code || strings.Contains(a.Text, "Hotel One") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
		if a := h.get(path, "If-None-Match", "*"); a.StatusCode != 404 {
			t.Errorf("%s: %d to who has it", path, a.StatusCode)
		}
	}
	if err := h.Tenants().Reinstate(t.Context(), tenantOf(1)); err != nil {
		t.Fatal(err)
	}
	h.ok(inURL)
	h.ok(days)
}

func TestASuspendedTenantsHotelIsNotSimilar(t *testing.T) {
	h := newHouse(t)
	before := h.ok(inURL)
	h.Suspend(tenantOf(3))
	h.ok(inURL) // reads the set anew
	h.Trips.Take()
	a := h.ok(inURL)
	if a.state() != "HIT" || len(a.SimilarProperties) != 3 || strings.Contains(a.Text, tenantOf(3)) || a.Header.Get("Cache-Control") != stored {
		t.Errorf("%s %s", a.state(), a.Text)
	}
	if n := h.Trips.Take(); n != 1 {
		t.Errorf("%d Redis round trips", n)
	}
	if a.Header.Get("ETag") == before.Header.Get("ETag") {
		t.Error("another body has the same ETag")
	}
	if again := h.ok(inURL); again.Header.Get("ETag") != a.Header.Get("ETag") {
		t.Error("the same body has another ETag")
	}
	for _, n := range []int{2, 4, 5} { // 5 is tenant 0
		h.Suspend(tenantOf(n))
	}
	h.ok(inURL)
	if a = h.ok(inURL); a.SimilarProperties != nil || strings.Contains(a.Text, "similarProperties") {
		t.Errorf("%s", a.Text)
	}
}

func TestASuspensionIsKnownWithoutRedis(t *testing.T) {
	h := newHouse(t)
	h.Suspend(tenantOf(1))
	h.Redis.Stop()
	if a := h.get(inURL); a.StatusCode != 404 {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
}
