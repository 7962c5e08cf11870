package sandbox

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func date(s string) stay.Date {
	d, err := stay.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func threeNights() stay.Dates {
	return stay.Dates{CheckIn: date("2026-12-01"), CheckOut: date("2026-12-04")}
}

func couple() stay.Occupancy { return stay.Occupancy{Adults: 2, Rooms: 1} }

func newQuery(where upstream.Area) upstream.SearchQuery {
	return upstream.SearchQuery{
		Kind: upstream.List, Geo: where, Dates: threeNights(), Occupancy: couple(), SortKey: "recommended",
		Locale: "en", Currency: money.USD, Page: upstream.Page{Limit: 250},
	}
}

func cityArea(name string) upstream.Area   { return upstream.Area{Mode: "city", City: name} }
func regionArea(name string) upstream.Area { return upstream.Area{Mode: "region", Region: name} }

func search(t *testing.T, r runningSandbox, q upstream.SearchQuery) upstream.SearchResult {
	t.Helper()
	res, err := r.Search.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestQuery_EachAreaModeFindsPlace(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, dataset.Embedded())
	kabul := geo.Point{Lat: 34.5281, Lng: 69.1723}
	box := geo.Box{SwLat: 34.3, SwLng: 69.0, NeLat: 34.7, NeLng: 69.4}
	for name, c := range map[string]struct {
		where upstream.Area
		place upstream.Place
	}{
		"point":  {upstream.Area{Mode: "point", Point: &upstream.Circle{Lat: kabul.Lat, Lng: kabul.Lng, RadiusKm: 20}}, upstream.Place{City: "Kabul", Region: "Kabul", Country: "AF"}},
		"box":    {upstream.Area{Mode: "bounding-box", BoundingBox: &box}, upstream.Place{}},
		"city":   {cityArea("کابل"), upstream.Place{City: "Kabul", Region: "Kabul", Country: "AF"}},
		"region": {regionArea("کابل"), upstream.Place{Region: "Kabul", Country: "AF"}},
	} {
		t.Run(name, func(t *testing.T) {
			res := search(t, r, newQuery(c.where))
			if res.ResultCount != len(res.Hits) || res.ResultCount < 6 {
				t.Errorf("%d of %d hits", len(res.Hits), res.ResultCount)
			}
			if got := placeValue(res.Place); got != c.place {
				t.Errorf("place %+v, want %+v", got, c.place)
			}
			if len(res.Coverage) == 0 || len(res.Coverage) > 32 {
				t.Errorf("coverage %v", res.Coverage)
			}
			for _, h := range res.Hits {
				if h.City != "Kabul" || h.Country != "AF" || geo.DistanceKm(kabul, h.Geo) > 20 {
					t.Errorf("hit %+v", h)
				}
				cell := geo.CellAt(h.Geo, res.Coverage[0].Res())
				if !slices.Contains(res.Coverage, cell) {
					t.Errorf("%s lies outside of the coverage", h.Name.Default)
				}
				switch {
				case (h.DistanceKm != nil) != (name == "point"):
					t.Errorf("distance %v", h.DistanceKm)
				case name == "point" && (*h.DistanceKm-geo.DistanceKm(kabul, h.Geo))*1000 > 6:
					t.Errorf("distance %v, want %v", *h.DistanceKm, geo.DistanceKm(kabul, h.Geo))
				}
			}
		})
	}
}

func placeValue(p *upstream.Place) upstream.Place {
	if p == nil {
		return upstream.Place{}
	}
	return *p
}

func TestQuery_UnknownPlaceIsEmpty(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, dataset.Embedded())
	for _, where := range []upstream.Area{cityArea("Atlantis"), regionArea("Mordor"), {Mode: "point", Point: &upstream.Circle{Lat: -40, Lng: -140, RadiusKm: 200}}} {
		if res := search(t, r, newQuery(where)); res.ResultCount != 0 || len(res.Hits) != 0 || res.Place != nil {
			t.Errorf("%+v found %+v", where, res)
		}
	}
}

func TestQuery_HintsCorrectedSpelling(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, referenceData(t))
	res := search(t, r, newQuery(cityArea("fes")))
	if len(res.Hits) == 0 || res.Place.City != "Fès" || string(res.QueryRewriteHint) != `{"kind":"spelling","used":"Fès"}` || res.AIProvenance == nil {
		t.Errorf("place %+v, hint %s", res.Place, res.QueryRewriteHint)
	}
	if res := search(t, r, newQuery(cityArea("fès"))); res.QueryRewriteHint != nil {
		t.Errorf("hint %s", res.QueryRewriteHint)
	}
}

// hitIDs returns the property ids of a result.
func hitIDs(res upstream.SearchResult) []string {
	ids := make([]string, len(res.Hits))
	for i, h := range res.Hits {
		ids[i] = h.PropertyID
	}
	return ids
}

func TestQuery_PagesAreConsistentAndDeterministic(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	q := newQuery(regionArea("AF"))
	whole := hitIDs(search(t, r, q))
	again := hitIDs(search(t, startSandbox(t, dataset.Embedded()), q))
	if !slices.Equal(whole, again) {
		t.Error("a second sandbox responds differently")
	}
	var paged []string
	for q.Page = (upstream.Page{Limit: 7}); q.Page.Offset < len(whole)+7; q.Page.Offset += 7 {
		res := search(t, r, q)
		if res.ResultCount != len(whole) {
			t.Errorf("page at %d counts %d", q.Page.Offset, res.ResultCount)
		}
		paged = append(paged, hitIDs(res)...)
	}
	if !slices.Equal(whole, paged) {
		t.Errorf("pages give %d, the whole %d", len(paged), len(whole))
	}
}

func TestQuery_MapReturnsUpTo250Hits(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, referenceData(t))
	q := newQuery(upstream.Area{Mode: "bounding-box", BoundingBox: &geo.Box{SwLat: 30, SwLng: -10, NeLat: 35, NeLng: -5}})
	q.Kind = upstream.Map
	res := search(t, r, q)
	if len(res.Hits) != 250 || res.ResultCount <= 250 {
		t.Errorf("%d pins of %d", len(res.Hits), res.ResultCount)
	}
}

func TestProperty_NamedInRequestedLanguage(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, dataset.Embedded())
	for locale, want := range map[string]string{"fa-AF": "هتل", "ps-AF": "هوټل", "ar": "فندق", "ur-PK": "ہوٹل", "tg-TJ": "Меҳмонхонаи", "ru": "Отель", "fr": "Hôtel"} {
		q := newQuery(cityArea("Kabul"))
		q.Locale = "en"
		hits := search(t, r, q).Hits
		at := slices.IndexFunc(hits, func(h upstream.Hit) bool { return strings.HasSuffix(h.Name.Default, " Hotel") })
		d, err := r.Property.Get(t.Context(), hits[at].PropertyID, "en")
		if err != nil || d.Name.Localized[strings.Split(locale, "-")[0]] == "" {
			t.Fatalf("%+v %v", d.Name, err)
		}
		res, err := r.Search.Hotel(t.Context(), hits[at].PropertyID, "fa-AF", money.AFN)
		if err != nil || !strings.HasPrefix(res.Hit.Name.Localized["fa-AF"], "هتل") {
			t.Errorf("%+v %v", res.Hit.Name, err)
		}
		if name := d.Name.Localized[strings.Split(locale, "-")[0]]; !strings.Contains(name, want) {
			t.Errorf("in %s it is called %s", locale, name)
		}
	}
}

func TestQuery_RejectsContractViolations(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	good := `{"kind":"list","geo":{"mode":"city","city":"Kabul"},"dates":{"checkIn":"2026-12-01","checkOut":"2026-12-04"},` +
		`"occupancy":{"adults":2,"children":0,"rooms":1},"sortKey":"recommended","locale":"en","currency":"AFN","page":{"limit":20,"offset":0}}`
	if status := postQuery(s, good).Code; status != http.StatusOK {
		t.Fatalf("a good query gets %d", status)
	}
	for _, change := range [][2]string{
		{`"kind":"list"`, `"kind":"tree"`}, {`"kind":"list",`, `"kind":"list","tenantId":"x",`},
		{`"city":"Kabul"`, `"city":"Kabul","region":"AF"`}, {`"mode":"city"`, `"mode":"region"`}, {`"mode":"city"`, `"mode":"moon"`},
		{`"city":"Kabul"`, `"city":""`}, {`{"mode":"city","city":"Kabul"}`, `{"mode":"point","point":{"lat":1,"lng":2,"radiusKm":501}}`},
		{`{"mode":"city","city":"Kabul"}`, `{"mode":"point","point":{"lat":91,"lng":2,"radiusKm":5}}`},
		{`{"mode":"city","city":"Kabul"}`, `{"mode":"bounding-box","boundingBox":{"swLat":5,"swLng":1,"neLat":4,"neLng":2}}`},
		{`"2026-12-04"`, `"2026-12-01"`}, {`"2026-12-04"`, `"2027-01-01"`}, {`"2026-12-01"`, `"2026-13-01"`}, {`"adults":2`, `"adults":0`},
		{`"recommended"`, `"cheapest"`}, {`"limit":20`, `"limit":251`}, {`"limit":20`, `"limit":0`}, {`"offset":0`, `"offset":1001`},
		{`"locale":"en",`, ``}, {`"currency":"AFN",`, ``}, {`"page":`, `"filters":{"priceRange":{"minMinor":"x","currency":"USD"}},"page":`},
		{`"page":`, `"filters":{"priceRange":{"currency":"XXX"}},"page":`}, {`"page":`, `"filters":{"cancellationFlexibility":"soon"},"page":`},
		{`"page":`, `"filters":{"guestRatingMin":11},"page":`}, {`"page":`, `"filters":{"starRating":["3"]},"page":`}, {good, ``}, {good, `[]`},
	} {
		if !strings.Contains(good, change[0]) {
			t.Fatalf("%s is not in the query", change[0])
		}
		rec := postQuery(s, strings.Replace(good, change[0], change[1], 1))
		if rec.Code != http.StatusBadRequest || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s gets %d %s", change[1], rec.Code, rec.Body)
		}
	}
}

func TestQuery_OmitsSoldOutProperties(t *testing.T) {
	t.Parallel()
	data := referenceData(t)
	r := startSandbox(t, data)
	q := newQuery(cityArea("Pokhara"))
	soldOut := 0
	for n := range 8 {
		q.Dates = stay.Dates{CheckIn: date("2027-01-01").AddDays(n), CheckOut: date("2027-01-01").AddDays(n + 2)}
		found := hitIDs(search(t, r, q))
		for _, p := range data.City("Pokhara").Properties {
			wanted := isAvailable(p, q.Dates, 1)
			if !wanted {
				soldOut++
			}
			if wanted != slices.Contains(found, p.ID) && len(found) < 250 {
				t.Fatalf("%s on %s: free %v", p.Row.Name, q.Dates.CheckIn, wanted)
			}
		}
	}
	if soldOut == 0 {
		t.Error("nothing is ever sold out")
	}
}

func TestFacets_MatchFilterCounts(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	f, err := r.Search.Facets(t.Context(), "AF", "", "fa-AF")
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string][]upstream.FacetValue{}
	for _, one := range f.Facets {
		byKey[one.Key] = one.Values
	}
	for _, key := range facetKeys {
		if len(byKey[key]) == 0 {
			t.Errorf("no values for %s", key)
		}
	}
	wifi := byKey["amenities"][slices.IndexFunc(byKey["amenities"], func(v upstream.FacetValue) bool { return v.Value == "wifi" })]
	n := 0
	for _, p := range data.Country("AF").Properties {
		if slices.Contains(p.Amenities, "wifi") {
			n++
		}
	}
	if wifi.Count != n || wifi.Label != "وای‌فای" {
		t.Errorf("%+v, want %d", wifi, n)
	}
	herat, err := r.Search.Facets(t.Context(), "AF", "hérat", "en")
	if err != nil || herat.Region != "Herat" || reflect.DeepEqual(herat.Facets, f.Facets) {
		t.Errorf("%+v %v", herat, err)
	}
	for _, where := range [][2]string{{"GB", ""}, {"AF", "Kent"}, {"af", ""}} {
		if _, err := r.Search.Facets(t.Context(), where[0], where[1], "en"); err != upstream.ErrNotFound {
			t.Errorf("%v: %v", where, err)
		}
	}
}

func TestHotel_ListsSimilarAndAvailability(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	p := data.City("Herat").Properties[0]
	h, err := r.Search.Hotel(t.Context(), p.ID, "en", money.AFN)
	if err != nil || h.Hit.PropertyID != p.ID || len(h.Similar) != 4 {
		t.Fatalf("%+v %v", h, err)
	}
	for _, other := range h.Similar {
		if other.City != "Herat" {
			t.Errorf("similar in %s", other.City)
		}
	}
	if _, err := r.Search.Hotel(t.Context(), "ppt_01KA2X5T7QJ0V3M8N4R6B9CWDE", "en", money.AFN); err != upstream.ErrNotFound {
		t.Error(err)
	}
	days, err := r.Search.Availability(t.Context(), upstream.AvailabilityQuery{
		PropertyID: p.ID, From: date("2026-12-01"), To: date("2027-01-31"), Adults: 2, Rooms: 1,
	})
	if err != nil || len(days) != 62 {
		t.Fatalf("%d days, %v", len(days), err)
	}
	for _, d := range days {
		if d.Available != (d.CheapestMinor != "") || d.Available && d.Currency != "AFN" {
			t.Errorf("%+v", d)
		}
	}
	want := fmt.Sprint(days[0].CheapestMinor)
	quotes, err := r.Pricing.Preview(t.Context(), upstream.QuoteRequest{
		Properties: []upstream.PropertyRef{{PropertyID: p.ID, TenantID: p.Tenant.ID}}, Currency: money.AFN, Locale: "en", Occupancy: couple(),
		Dates: stay.Dates{CheckIn: date("2026-12-01"), CheckOut: date("2026-12-02")},
	})
	if got := fmt.Sprint(quotes[p.ID].CheapestNightlyMinor); err != nil || got != want {
		t.Errorf("the calendar says %s, the quote %s, %v", want, got, err)
	}
}
