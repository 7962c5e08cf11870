package sandbox

import (
	"cmp"
	"net/http"
	"slices"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func fetchQuotes(t *testing.T, r runningSandbox, q upstream.SearchQuery, hits []upstream.Hit) map[string]upstream.Quote {
	t.Helper()
	all := map[string]upstream.Quote{}
	for batch := range slices.Chunk(hits, 50) {
		request := upstream.QuoteRequest{Dates: q.Dates, Occupancy: q.Occupancy, Currency: q.Currency, Locale: q.Locale}
		for _, h := range batch {
			request.Properties = append(request.Properties, upstream.PropertyRef{PropertyID: h.PropertyID, TenantID: h.TenantID})
		}
		quotes, err := r.Pricing.Preview(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for id, quote := range quotes {
			all[id] = quote
		}
	}
	return all
}

func TestQuery_SortsByEachKey(t *testing.T) {
	t.Parallel()
	data := referenceData(t)
	r := startSandbox(t, data)
	for _, currency := range money.Supported() {
		for _, key := range []string{"price-asc", "price-desc"} {
			q := newQuery(cityArea("Medina"))
			q.SortKey, q.Currency = key, currency
			q.Dates.CheckOut = date("2026-12-11")
			q.Occupancy = stay.Occupancy{Adults: 3, Children: 1, Rooms: 1}
			q.Page.Limit = 60
			res := search(t, r, q)
			quotes := fetchQuotes(t, r, q, res.Hits)
			if len(quotes) != len(res.Hits) || len(quotes) < 60 {
				t.Fatalf("%d quotes for %d hits", len(quotes), len(res.Hits))
			}
			sign := map[string]int{"price-asc": 1, "price-desc": -1}[key]
			for _, amount := range []func(upstream.Quote) money.Minor{
				func(q upstream.Quote) money.Minor { return q.CheapestNightlyMinor },
				func(q upstream.Quote) money.Minor { return q.TotalForStayMinor },
			} {
				if !slices.IsSortedFunc(res.Hits, func(a, b upstream.Hit) int {
					return sign * amount(quotes[a.PropertyID]).Cmp(amount(quotes[b.PropertyID]))
				}) {
					t.Errorf("%s in %s is not in order", key, currency)
				}
			}
		}
	}
	q := newQuery(cityArea("Medina"))
	q.SortKey = "rating-desc"
	if !slices.IsSortedFunc(search(t, r, q).Hits, func(a, b upstream.Hit) int { return cmp.Compare(ratingValue(b), ratingValue(a)) }) {
		t.Error("rating-desc is not in order")
	}
	q = newQuery(upstream.Area{Mode: "point", Point: &upstream.Circle{Lat: 24.4672, Lng: 39.6111, RadiusKm: 3}})
	q.SortKey = "distance-asc"
	res := search(t, r, q)
	if !slices.IsSortedFunc(res.Hits, func(a, b upstream.Hit) int { return cmp.Compare(*a.DistanceKm, *b.DistanceKm) }) {
		t.Error("distance-asc is not in order")
	}
	if last := res.Hits[len(res.Hits)-1]; *last.DistanceKm > 3 {
		t.Errorf("%s is %v km away", last.Name.Default, *last.DistanceKm)
	}
	q.SortKey = "recommended"
	if slices.Equal(hitIDs(res), hitIDs(search(t, r, q))) {
		t.Error("recommended is the order by distance")
	}
}

func ratingValue(h upstream.Hit) float64 {
	if h.GuestRating == nil {
		return 0
	}
	return h.GuestRating.Value
}

func TestQuery_AppliesEachFilter(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	all := search(t, r, newQuery(regionArea("PK")))
	quotes := fetchQuotes(t, r, newQuery(regionArea("PK")), all.Hits)
	seven := 7.0
	for name, c := range map[string]struct {
		filters upstream.Filters
		keeps   func(p *dataset.Property, night money.Minor) bool
	}{
		"amenities": {upstream.Filters{Amenities: []string{"wifi", "prayer-room"}}, func(p *dataset.Property, _ money.Minor) bool {
			return slices.Contains(p.Amenities, "wifi") && slices.Contains(p.Amenities, "prayer-room")
		}},
		"stars":  {upstream.Filters{StarRating: []int{3, 4}}, func(p *dataset.Property, _ money.Minor) bool { return p.Stars == 3 || p.Stars == 4 }},
		"rating": {upstream.Filters{GuestRatingMin: &seven}, func(p *dataset.Property, _ money.Minor) bool { return p.Rating >= 70 }},
		"kind": {upstream.Filters{PropertyType: []string{"hostel", "guesthouse"}}, func(p *dataset.Property, _ money.Minor) bool {
			return p.Row.Kind == "hostel" || p.Row.Kind == "guesthouse"
		}},
		"free":    {upstream.Filters{CancellationFlexibility: "free"}, func(p *dataset.Property, _ money.Minor) bool { return p.Cancellation == "free" }},
		"partial": {upstream.Filters{CancellationFlexibility: "partial"}, func(p *dataset.Property, _ money.Minor) bool { return p.Cancellation != "none" }},
		"any":     {upstream.Filters{CancellationFlexibility: "any"}, func(*dataset.Property, money.Minor) bool { return true }},
		"quarter": {upstream.Filters{Neighbourhoods: []string{"saddar", "CLIFTON"}}, func(p *dataset.Property, _ money.Minor) bool {
			return p.District == "Saddar" || p.District == "Clifton"
		}},
		"price":       {upstream.Filters{PriceRange: &upstream.PriceRange{MinMinor: "2000", MaxMinor: "4000", Currency: money.USD}}, func(_ *dataset.Property, n money.Minor) bool { return n.Cmp("2000") >= 0 && n.Cmp("4000") <= 0 }},
		"at least":    {upstream.Filters{PriceRange: &upstream.PriceRange{MinMinor: "3000", Currency: money.USD}}, func(_ *dataset.Property, n money.Minor) bool { return n.Cmp("3000") >= 0 }},
		"none at all": {upstream.Filters{}, func(*dataset.Property, money.Minor) bool { return true }},
		"all together": {upstream.Filters{Amenities: []string{"wifi"}, StarRating: []int{3}, CancellationFlexibility: "partial"}, func(p *dataset.Property, _ money.Minor) bool {
			return slices.Contains(p.Amenities, "wifi") && p.Stars == 3 && p.Cancellation != "none"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, h := range all.Hits {
				if c.keeps(data.Property(h.PropertyID), quotes[h.PropertyID].CheapestNightlyMinor) {
					want = append(want, h.PropertyID)
				}
			}
			q := newQuery(regionArea("PK"))
			q.Filters = &c.filters
			if got := hitIDs(search(t, r, q)); !slices.Equal(got, want) {
				t.Errorf("%d hits, want %d", len(got), len(want))
			}
			if len(want) == 0 {
				t.Error("the filter leaves nothing to see")
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	s := New(referenceData(b), time.Now)
	for name, geo := range map[string]string{
		"city": `{"mode":"city","city":"Medina"}`, "country": `{"mode":"region","region":"MA"}`,
		"point": `{"mode":"point","point":{"lat":31.63,"lng":-8,"radiusKm":10}}`,
		"box":   `{"mode":"bounding-box","boundingBox":{"swLat":31,"swLng":-9,"neLat":32,"neLng":-7}}`,
	} {
		body := `{"kind":"list","geo":` + geo + `,"dates":{"checkIn":"2026-12-01","checkOut":"2026-12-04"},` +
			`"occupancy":{"adults":2,"children":0,"rooms":1},"sortKey":"price-asc","locale":"en","currency":"AFN","page":{"limit":20,"offset":0}}`
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if rec := postQuery(s, body); rec.Code != http.StatusOK {
					b.Fatal(rec.Code)
				}
			}
		})
	}
}
