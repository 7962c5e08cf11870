package upstream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPreview_DropsInvalidQuotes(t *testing.T) {
	good := contractExample(t, loadContract(t, "pricing"), "previewQuotes", "cards")
	bad := map[string][]any{
		// the second is not in the request
		"propertyId":            {"x", "ppt_01KA2X5T7QZZZZZZZZZZZZZZZ2", nil, removed{}},
		"cheapestNightlyMinor":  {"", "-1", "1.5", "1e3", "007", "+1", " 1", strings.Repeat("9", 19), nil, removed{}},
		"totalForStayMinor":     {"", "-450000", "4 500", removed{}},
		"currency":              {"", "afn", "XXX", "DEM", "AFNX", removed{}},
		"currencyDisplayPolicy": {"", "Tenant", "mine", removed{}},
		"capturedAt":            {"0001-01-01T00:00:00Z", "2026-11-20T10:50:00Z", "2026-11-19T10:49:00Z", nil, removed{}},
		"ttlExpiresAt":          {"2026-11-20T10:49:00Z", "2026-11-22T10:50:00Z", removed{}},
	}
	second := asJSON(t, withValue(t, withValue(t, good, "quotes.0.propertyId", otherHotel), "quotes.0.fxSnapshotId", "<b>")).(map[string]any)["quotes"].([]any)[0]
	for name, values := range bad {
		for _, v := range values {
			first := asJSON(t, withValue(t, good, "quotes.0."+name, v)).(map[string]any)["quotes"].([]any)[0]
			got, err := newCannedUpstreams(t, withValue(t, good, "quotes", []any{first, second})).Pricing.Preview(t.Context(), quoteRequest(nil))
			if err != nil || len(got) != 1 || got[otherHotel].TotalForStayMinor != "1350000" || got[otherHotel].FXSnapshotID != "" {
				t.Errorf("%s = %v: got %v, %v, want only the other quote", name, v, got, err)
			}
		}
	}
	first := asJSON(t, good).(map[string]any)["quotes"].([]any)[0]
	other := asJSON(t, withValue(t, good, "quotes.0.totalForStayMinor", "1")).(map[string]any)["quotes"].([]any)[0]
	got, err := newCannedUpstreams(t, withValue(t, good, "quotes", []any{first, other})).Pricing.Preview(t.Context(), quoteRequest(nil))
	if err != nil || len(got) != 1 || got[kabulHotel].TotalForStayMinor != "1350000" {
		t.Errorf("duplicate quotes: got %v, %v, want the first quote", got, err)
	}
}

func TestPreview_MalformedResponseFails(t *testing.T) {
	good := contractExample(t, loadContract(t, "pricing"), "previewQuotes", "cards")
	for _, body := range [][]byte{
		withValue(t, good, "quotes", nil), withValue(t, good, "quotes", removed{}), withValue(t, good, "quotes", map[string]any{}),
		withValue(t, good, "quotes.0.totalForStayMinor", 1350000), withValue(t, good, "quotes.0.capturedAt", "yesterday"),
		withValue(t, good, "quotes.0.currency", "??"), // the only quote
	} {
		if got, err := newCannedUpstreams(t, body).Pricing.Preview(t.Context(), quoteRequest(nil)); ReasonOf(err) != BadResponse || got != nil {
			t.Errorf("body %s: got %v, %v, want bad-response", body, got, err)
		}
	}
}

func TestPreview_EmptyBatchSendsNothing(t *testing.T) {
	got, err := newCannedUpstreams(t, []byte("never read")).Pricing.Preview(t.Context(), QuoteRequest{})
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("got %v, %v, want an empty map", got, err)
	}
}

func TestPreview_CalendarIsSortedAndInRange(t *testing.T) {
	night := func(date, amount string) any {
		return map[string]any{"date": date, "cheapestMinor": amount, "currency": "AFN"}
	}
	body := withValue(t, contractExample(t, loadContract(t, "pricing"), "previewQuotes", "calendar"), "quotes.0.calendar", []any{
		night("2026-12-03", "3"), night("2026-12-01", "1"), night("2026-12-03", "33"), night("2026-12-02", "-2"),
		night("2026-11-30", "30"), night("2026-12-08", "8"), night("2026-12-07", "7"),
	})
	got, err := newCannedUpstreams(t, body).Pricing.Preview(t.Context(), quoteRequest(&CalendarSpan{From: day(1), Days: 7}))
	want := []CalendarDay{{day(1), "1", "AFN"}, {day(3), "3", "AFN"}, {day(7), "7", "AFN"}}
	if diff := cmp.Diff(want, got[kabulHotel].Calendar); err != nil || diff != "" {
		t.Errorf("error %v (- want + got):\n%s", err, diff)
	}
	if got, err := newCannedUpstreams(t, body).Pricing.Preview(t.Context(), quoteRequest(nil)); err != nil || got[kabulHotel].Calendar != nil {
		t.Errorf("request without a calendar: got %v, %v, want quotes without calendars", got, err)
	}
}

func TestAvailability_DaysAreSortedUniqueAndInRange(t *testing.T) {
	good := contractExample(t, loadContract(t, "search-aggregation"), "getAvailability", "")
	body := withValue(t, good, "days", []any{
		map[string]any{"date": "2026-12-05", "available": true, "roomsLeft": -1, "cheapestMinor": "5"},
		map[string]any{"date": "2026-12-04", "available": true, "roomsLeft": 2, "cheapestMinor": "4", "currency": "AFN"},
		map[string]any{"date": "2026-12-05", "available": false},
		map[string]any{"date": "2027-01-01", "available": true},
		map[string]any{"date": "2026-11-30", "available": true},
	})
	got, err := newCannedUpstreams(t, body).Search.Availability(t.Context(), decemberQuery())
	two := 2
	want := []Day{{Date: day(4), Available: true, RoomsLeft: &two, CheapestMinor: "4", Currency: "AFN"}, {Date: day(5), Available: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (- want + got):\n%s", err, diff)
	}
	for _, bad := range [][]byte{withValue(t, good, "days", removed{}), withValue(t, good, "days.0.date", "2026-13-01"), withValue(t, good, "days.0.available", "yes")} {
		if _, err := newCannedUpstreams(t, bad).Search.Availability(t.Context(), decemberQuery()); ReasonOf(err) != BadResponse {
			t.Errorf("body %s: got %v, want bad-response", bad, err)
		}
	}
}

func TestHotel_MatchesRequestedProperty(t *testing.T) {
	good := contractExample(t, loadContract(t, "search-aggregation"), "getHotel", "")
	for path, v := range map[string]any{
		"hit.propertyId": otherHotel, "hit.tenantSlug": "A", "hit": removed{}, "popularity.viewedLast1h": -1, "reviewSummary.value": 11,
	} {
		t.Run(path, func(t *testing.T) {
			if _, err := newCannedUpstreams(t, withValue(t, good, path, v)).Search.Hotel(t.Context(), kabulHotel, "en", "USD"); ReasonOf(err) != BadResponse {
				t.Errorf("value %v: got %v, want bad-response", v, err)
			}
		})
	}
	hit := func(id string) any {
		return asJSON(t, withValue(t, good, "hit.propertyId", id)).(map[string]any)["hit"]
	}
	ids := []string{"1", "2", "2", "bad!", "3", "4", "5"}
	similar := []any{hit(kabulHotel)} // the hotel itself must be dropped
	for _, id := range ids {
		similar = append(similar, hit("ppt_01KA2X5T7QZZZZZZZZZZZZZZZ"+id))
	}
	got, err := newCannedUpstreams(t, withValue(t, good, "similar", similar)).Search.Hotel(t.Context(), kabulHotel, "en", "USD")
	var last string
	for _, h := range got.Similar {
		last += h.PropertyID[len(h.PropertyID)-1:]
	}
	if err != nil || last != "1234" {
		t.Errorf("similar hotels: got %s, %v, want 1234", last, err)
	}
}

func TestFacets_DropsInvalidValues(t *testing.T) {
	good := contractExample(t, loadContract(t, "search-aggregation"), "getFacets", "")
	value := func(v, label string, count int) any {
		return map[string]any{"value": v, "label": label, "count": count}
	}
	body := withValue(t, withValue(t, good, "region", "\x00"), "facets", []any{
		map[string]any{"key": "a b", "values": []any{value("x", "X", 1)}},
		map[string]any{"key": "stars", "values": []any{value("4", "Four", 2), value("", "None", 1), value("5", "", 1), value("3", "Three", -1)}},
		map[string]any{"key": "empty", "values": nil},
	})
	got, err := newCannedUpstreams(t, body).Search.Facets(t.Context(), "AF", "", "en")
	want := Facets{Country: "AF", Facets: []Facet{{"stars", []FacetValue{{"4", "Four", 2}}}, {"empty", []FacetValue{}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (- want + got):\n%s", err, diff)
	}
	for path, v := range map[string]any{"country": "IR", "facets": nil} {
		t.Run(path, func(t *testing.T) {
			if _, err := newCannedUpstreams(t, withValue(t, good, path, v)).Search.Facets(t.Context(), "AF", "", "en"); ReasonOf(err) != BadResponse {
				t.Errorf("value %v: got %v, want bad-response", v, err)
			}
		})
	}
}

func TestPropertyGet_RequiresRequestedCompleteProperty(t *testing.T) {
	good := contractExample(t, loadContract(t, "property"), "getProperty", "")
	for path, v := range map[string]any{
		"propertyId": otherHotel, "tenantId": "x", "tenantSlug": "a.b", "name": removed{}, "city": "", "country": "af", "geo.lat": 100,
		"policies.checkIn": "\x00", "policies.cancellation": strings.Repeat("x", maxText+1), "rooms": "none", "photos.0.isHero": "yes",
	} {
		t.Run(path, func(t *testing.T) {
			if _, err := newCannedUpstreams(t, withValue(t, good, path, v)).Property.Get(t.Context(), kabulHotel, "en"); ReasonOf(err) != BadResponse {
				t.Errorf("value %v: got %v, want bad-response", v, err)
			}
		})
	}
}

func TestPropertyGet_DropsInvalidOptionalValues(t *testing.T) {
	good := contractExample(t, loadContract(t, "property"), "getProperty", "")
	for _, c := range []struct {
		path  string
		value any
		of    func(PropertyDetail) any
		want  any
	}{
		{"description", strings.Repeat("x", maxDescription+1), func(d PropertyDetail) any { return d.Description }, ""},
		{"address", "\x07", func(d PropertyDetail) any { return d.Address }, ""},
		{"starRating", 9, func(d PropertyDetail) any { return d.StarRating }, 0.0},
		{"rooms.0.roomTypeId", "a b", func(d PropertyDetail) any { return len(d.Rooms) }, 1},
		{"rooms.0.roomTypeId", "rmt_single", func(d PropertyDetail) any { return len(d.Rooms) }, 1},
		{"rooms.0.maxOccupancy", 0, func(d PropertyDetail) any { return len(d.Rooms) }, 1},
		{"rooms.0.sizeSqm", -3, func(d PropertyDetail) any { return d.Rooms[0].SizeSqm }, 0.0},
		{"rooms.0.beds", strings.Repeat("b", 201), func(d PropertyDetail) any { return d.Rooms[0].Beds }, ""},
		{"rooms.0.photos.0.url", "http://img.test/x", func(d PropertyDetail) any { return len(d.Rooms[0].Photos) }, 0},
		{"rooms", removed{}, func(d PropertyDetail) any { return d.Rooms }, []Room{}},
		{"amenities.1.code", "wifi", func(d PropertyDetail) any { return len(d.Amenities) }, 1},
		{"amenities.1.label", "", func(d PropertyDetail) any { return len(d.Amenities) }, 1},
		{"amenities.0.category", "<b>", func(d PropertyDetail) any { return d.Amenities[0].Category }, ""},
		{"photos.0.url", "javascript:1", func(d PropertyDetail) any { return len(d.Photos) }, 1},
		{"photos.1.isHero", true, func(d PropertyDetail) any { return d.Photos[0].IsHero && !d.Photos[1].IsHero }, true},
	} {
		t.Run(c.path, func(t *testing.T) {
			got, err := newCannedUpstreams(t, withValue(t, good, c.path, c.value)).Property.Get(t.Context(), kabulHotel, "en")
			if err != nil {
				t.Errorf("value %.20v: got error %v", c.value, err)
				return
			}
			if diff := cmp.Diff(c.want, c.of(got)); diff != "" {
				t.Errorf("value %.20v (- want + got):\n%s", c.value, diff)
			}
		})
	}
}

func TestBrand_RequiresRequestedCompleteBrand(t *testing.T) {
	good := contractExample(t, loadContract(t, "theme-config"), "getBrandPeek", "")
	for path, values := range map[string][]any{
		"tenantId":          {otherTenant, "", removed{}},
		"tenantSlug":        {"", "A", "a.b", removed{}},
		"primaryColor":      {"", "red", "#fff", "#12345g", "#1234567", "#12345;", removed{}},
		"logoUrl":           invalidURLs,
		"brandName.default": invalidTexts,
		"brandName":         {nil, "Babur"},
	} {
		t.Run(path, func(t *testing.T) {
			for _, v := range values {
				if _, err := newCannedUpstreams(t, withValue(t, good, path, v)).Theme.Brand(t.Context(), kabulTenant); ReasonOf(err) != BadResponse {
					t.Errorf("value %v: got %v, want bad-response", v, err)
				}
			}
		})
	}
}

func TestFetch_EscapesIDInPath(t *testing.T) {
	// Handlers validate ids; escaping is a second line of defence.
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen = r.URL.EscapedPath() }))
	defer server.Close()
	newTestUpstreams(t, server.URL, nil).Property.Get(t.Context(), "../../admin?x=1#", "en")
	if want := "/api/v1/properties/..%2F..%2Fadmin%3Fx=1%23"; seen != want {
		t.Errorf("got path %s, want %s", seen, want)
	}
}
