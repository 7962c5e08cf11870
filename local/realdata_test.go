package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// searchResponse is the part of a list that the test reads.
type searchResponse struct {
	ResultCount      int
	Locale, Currency string
	Listings         []struct {
		Name          struct{ Default string }
		City, Country string
		Geo           geo.Point
		DistanceKm    *float64
		GuestRating   *struct{ Value float64 }
		RateSnapshot  *struct {
			CheapestNightlyMinor string
			Currency             string
		}
	}
}

func (f *searchResponse) prices() []int {
	var list []int
	for _, card := range f.Listings {
		if card.RateSnapshot != nil {
			n, _ := strconv.Atoi(card.RateSnapshot.CheapestNightlyMinor)
			list = append(list, n)
		}
	}
	return list
}

// The reference accommodations are beside the repository, or below SHARED_DATA. The test skips
// without the file.
func TestSearch_FindsReferenceAccommodations(t *testing.T) {
	file := filepath.Join(cmp.Or(os.Getenv("SHARED_DATA"), filepath.Join("..", "..", "shared", "data")), "hotels", "osm-accommodations.jsonl")
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	s := servertest.StartDataset(t, file)

	marrakesh := geo.Point{Lat: 31.63, Lng: -8}
	lake := geo.Box{SwLat: 28.1, SwLng: 83.8, NeLat: 28.4, NeLng: 84.1}
	for name, c := range map[string]struct {
		locale, currency, geo, sort string
		check                       func(t *testing.T, f *searchResponse)
	}{
		"Medina in Arabic and dirham, cheapest first": {"ar", "AED", `{"mode":"city","city":"Medina"}`, "price-asc", func(t *testing.T, f *searchResponse) {
			for _, card := range f.Listings {
				if card.Country != "SA" || geo.DistanceKm(card.Geo, geo.Point{Lat: 24.47, Lng: 39.61}) > 40 || card.DistanceKm != nil {
					t.Errorf("%+v", card)
				}
			}
			if p := f.prices(); len(p) != 20 || !slices.IsSorted(p) {
				t.Errorf("prices %v", p)
			}
			if !strings.ContainsAny(f.Listings[0].Name.Default, "ابتةحدرسفقكلمنهوي") {
				t.Errorf("%q is not in Arabic", f.Listings[0].Name.Default)
			}
		}},
		"Marrakesh in French and euro, dearest first": {"fr", "EUR", `{"mode":"city","city":"marrakesh"}`, "price-desc", func(t *testing.T, f *searchResponse) {
			for _, card := range f.Listings {
				if card.Country != "MA" || geo.DistanceKm(card.Geo, marrakesh) > 40 {
					t.Errorf("%+v", card)
				}
			}
			p := f.prices()
			if slices.Reverse(p); len(p) != 20 || !slices.IsSorted(p) {
				t.Errorf("prices %v", p)
			}
		}},
		"around a point, nearest first": {"en", "USD", `{"mode":"point","point":{"lat":31.63,"lng":-8,"radiusKm":5}}`, "distance-asc", func(t *testing.T, f *searchResponse) {
			last := 0.0
			for _, card := range f.Listings {
				away := geo.DistanceKm(card.Geo, marrakesh)
				if card.DistanceKm == nil || *card.DistanceKm < last || away > 5.1 || *card.DistanceKm-away > 0.02 || away-*card.DistanceKm > 0.02 {
					t.Errorf("a hotel %.2f km away: %+v", away, card)
					continue
				}
				last = *card.DistanceKm
			}
		}},
		"in a box, best rated first": {"en", "USD", `{"mode":"bounding-box","boundingBox":{"swLat":28.1,"swLng":83.8,"neLat":28.4,"neLng":84.1}}`, "rating-desc", func(t *testing.T, f *searchResponse) {
			last := 10.0
			for _, card := range f.Listings {
				if !lake.Contains(card.Geo) || card.GuestRating == nil || card.GuestRating.Value > last {
					t.Errorf("%+v", card)
					continue
				}
				last = card.GuestRating.Value
			}
		}},
		"in a region": {"ru", "GBP", `{"mode":"region","region":"ANDORRA"}`, "recommended", func(t *testing.T, f *searchResponse) {
			for _, card := range f.Listings {
				if card.Country != "AD" {
					t.Errorf("%+v", card)
				}
			}
		}},
		"without accents": {"fr", "EUR", `{"mode":"city","city":"fes"}`, "recommended", func(t *testing.T, f *searchResponse) {
			if f.Listings[0].City != "Fès" {
				t.Errorf("%+v", f.Listings[0])
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first, cache := searchHotels(t, s, c.locale, c.currency, c.geo, c.sort)
			if cache != "MISS" || len(first.Listings) == 0 || first.Locale != c.locale || first.Currency != c.currency {
				t.Fatalf("cache %s, %d hotels in %s and %s", cache, len(first.Listings), first.Locale, first.Currency)
			}
			c.check(t, first)
			before := totalUpstreamCalls(t, s)
			if _, cache = searchHotels(t, s, c.locale, c.currency, c.geo, c.sort); cache != "HIT" {
				t.Errorf("the second search: cache %s, want HIT", cache)
			}
			if n := totalUpstreamCalls(t, s) - before; n != 0 {
				t.Errorf("the second search made %d upstream calls, want 0", n)
			}
		})
	}
}

func searchHotels(t *testing.T, s *server.Server, locale, currency, area, sort string) (*searchResponse, string) {
	t.Helper()
	in := time.Now().UTC().AddDate(0, 0, 30)
	body := fmt.Sprintf(`{"geo":%s,"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1},"sortKey":%q}`,
		area, in.Format(time.DateOnly), in.AddDate(0, 0, 2).Format(time.DateOnly), sort)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/bff/consumer/v1/search", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Language", locale)
	req.Header.Set("X-Currency", currency)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var f searchResponse
	if err := json.NewDecoder(res.Body).Decode(&f); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	return &f, res.Header.Get("X-Cache")
}

func totalUpstreamCalls(t *testing.T, s *server.Server) (sum int) {
	t.Helper()
	res, err := http.Get(s.URL + "/_local/upstreams")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all map[string]struct{ Calls int }
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		sum += u.Calls
	}
	return sum
}
