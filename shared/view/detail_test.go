package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func property() *upstream.PropertyDetail {
	return &upstream.PropertyDetail{
		PropertyID: hit(0).PropertyID, TenantID: hit(0).TenantID, TenantSlug: "kabul-grand", Name: hit(0).Name,
		City: "Kabul", Country: "AF", Geo: geo.Point{Lat: 34.5, Lng: 69.2}, Address: "Street 1", StarRating: 4, Description: "A house.\nIt has rooms.",
		Rooms:     []upstream.Room{{RoomTypeID: "rmt_1", Name: "Double", MaxOccupancy: 2, SizeSqm: 20.5, Photos: []upstream.Image{{URL: "https://img.example/r.jpg"}}}},
		Amenities: []upstream.Amenity{{Code: "wifi", Label: "Wi-Fi"}},
		Photos:    []upstream.Photo{{URL: "https://img.example/a.jpg"}, {URL: "https://img.example/hero.jpg", Alt: "front", IsHero: true}},
		Policies:  upstream.Policies{Cancellation: "Free.", CheckIn: "14:00", CheckOut: "11:00"},
	}
}

func hotel() *upstream.Hotel {
	h := &upstream.Hotel{Hit: *hit(0), Popularity: upstream.Popularity{BookedLast24h: 7, ViewedLast1h: 40}, ReviewSummary: upstream.Rating{Value: 8.5, Count: 120}}
	for n := 1; n <= 4; n++ {
		h.Similar = append(h.Similar, *hit(n))
	}
	return h
}

func weekQuote(captured time.Time) *upstream.Quote {
	q := quote(captured)
	for n := range 7 {
		q.Calendar = append(q.Calendar, upstream.CalendarDay{Date: stay.DateOf(now).AddDays(n + 1), CheapestMinor: "450000", Currency: "AFN"})
	}
	return q
}

func TestHotelDetail_EncodeDecodeRoundTrip(t *testing.T) {
	t.Parallel()
	brands := map[string]*upstream.Brand{hit(0).TenantID: {PrimaryColor: "#aabbcc", LogoURL: "https://l.example/x.svg", BrandName: upstream.Localized{Default: "B"}}}
	full := NewHotelDetail(property(), hotel(), brands, "asia-south1", HandoffHint{"https://kabul-grand.example/book", 1800})
	full.Locale, full.Currency, full.Degraded = "fa-AF", "AFN", []Degraded{{"theme", "timeout"}}
	until := full.SetRate(DefaultStay(now), weekQuote(now), now)
	if !until.Equal(now.Add(time.Minute)) {
		t.Errorf("got fresh until %s, want %s", until, now.Add(time.Minute))
	}
	bare := NewHotelDetail(&upstream.PropertyDetail{PropertyID: hit(0).PropertyID, TenantID: hit(0).TenantID}, nil, nil, "", HandoffHint{})
	if until := bare.SetRate(DefaultStay(now), nil, now); !until.Equal(now.Add(time.Minute)) {
		t.Errorf("sold out: got fresh until %s, want %s", until, now.Add(time.Minute))
	}
	for name, d := range map[string]*HotelDetail{"all parts": full, "only mandatory parts": bare} {
		t.Run(name, func(t *testing.T) {
			body, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := DecodeHotelDetail(body)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := again.Encode()
			if err != nil || string(twice) != string(body) {
				t.Errorf("encoded again: got %s, %v, want %s", twice, err, body)
			}
			if strings.Contains(string(body), "null") {
				t.Errorf("got a null member: %s", body)
			}
		})
	}
	if _, err := DecodeHotelDetail([]byte(`{"property":7}`)); err == nil {
		t.Error("DecodeHotelDetail accepted malformed JSON")
	}
}

func TestHotelDetail_JSONMembers(t *testing.T) {
	t.Parallel()
	d := NewHotelDetail(property(), hotel(), nil, "asia-south1", HandoffHint{"https://kabul-grand.example/book", 1800})
	d.SetRate(DefaultStay(now), weekQuote(now), now)
	body, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"property", "rooms", "amenities", "photos", "policies", "brandPeek", "cheapestRateSnapshot",
		// docs/spec/routes.md#view-models
		"priceCalendarPreview", "similarProperties", "popularitySignals", "handoffHint", "degraded"} {
		if members[name] == nil {
			t.Errorf("member %s is missing in %s", name, body)
		}
	}
	if got := string(members["handoffHint"]); got != `{"url":"https://kabul-grand.example/book","ttlSeconds":1800}` {
		t.Errorf("got handoffHint %s", got)
	}
	if got := string(members["defaultStay"]); got != `{"dates":{"checkIn":"2026-11-21","checkOut":"2026-11-22"},"occupancy":{"adults":2,"children":0,"rooms":1}}` {
		t.Errorf("got defaultStay %s", got)
	}
	if len(d.SimilarProperties) != 4 || len(d.PriceCalendarPreview) != 7 || d.Property.GuestRating.Count != 120 {
		t.Errorf("got %s, want 4 similar properties, 7 days and 120 reviews", body)
	}
	if b := d.BrandPeek; !b.Neutral || b.LogoURL != "https://img.example/hero.jpg" {
		t.Errorf("got brand %+v, want a neutral brand with the hero photo", b)
	}
}

func TestHotelDetail_HidesSmallPopularityCounts(t *testing.T) {
	t.Parallel()
	for counts, want := range map[[2]int]*Popularity{
		{0, 0}: nil, {4, 4}: nil, {5, 4}: {BookedLast24h: 5}, {4, 5}: {ViewedLast1h: 5}, {5, 5}: {5, 5}, {900, 3}: {BookedLast24h: 900},
	} {
		got := popularity(upstream.Popularity{BookedLast24h: counts[0], ViewedLast1h: counts[1]})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts %v (- want + got):\n%s", counts, diff)
		}
	}
	d := NewHotelDetail(property(), &upstream.Hotel{Hit: *hit(0)}, nil, "", HandoffHint{})
	if d.PopularitySignals != nil || d.Property.GuestRating != nil || d.SimilarProperties != nil {
		t.Errorf("hotel without counts: got %+v", d)
	}
}

func TestHotelDetail_NeutralBrandUsesBestImage(t *testing.T) {
	t.Parallel()
	noHero, none := property(), property()
	noHero.Photos[1].IsHero, none.Photos = false, nil
	for want, url := range map[string]string{
		"https://img.example/hero.jpg": heroImage(property(), hotel()),
		"https://img.example/a.jpg":    heroImage(noHero, hotel()),
		"https://img.example/1.jpg":    heroImage(none, hotel()),
		"":                             heroImage(none, nil),
	} {
		if url != want {
			t.Errorf("got %q, want %q", url, want)
		}
	}
}

func TestHotelDetail_MarkStaleMarksEveryPrice(t *testing.T) {
	t.Parallel()
	d := NewHotelDetail(property(), nil, nil, "", HandoffHint{})
	d.MarkStale() // nothing to mark
	d.SetRate(DefaultStay(now), weekQuote(now), now)
	if body, _ := d.Encode(); strings.Count(string(body), `"isStale":true`) != 0 {
		t.Errorf("got %s, want no stale rate", body)
	}
	d.MarkStale()
	if body, _ := d.Encode(); strings.Count(string(body), `"isStale":true`) != 8 {
		t.Errorf("got %s, want 8 stale rates", body)
	}
	d.SetRate(DefaultStay(now), weekQuote(now), now)
	if body, _ := d.Encode(); strings.Count(string(body), `"isStale":true`) != 0 {
		t.Errorf("after new rates: got %s, want no stale rate", body)
	}
}

func TestHotelDetail_OwnTenantIDIsFirst(t *testing.T) {
	t.Parallel()
	d := NewHotelDetail(property(), hotel(), nil, "", HandoffHint{}) // tenants 0; 1 2 0 1
	if want := []string{hit(0).TenantID, hit(1).TenantID, hit(2).TenantID}; !slices.Equal(d.TenantIDs(), want) {
		t.Errorf("got tenants %v, want %v", d.TenantIDs(), want)
	}
	d.RemoveTenants(func(tenant string) bool { return tenant == hit(1).TenantID })
	if want := []string{hit(0).TenantID, hit(2).TenantID}; !slices.Equal(d.TenantIDs(), want) || len(d.SimilarProperties) != 2 {
		t.Errorf("after the removal: got tenants %v, want %v", d.TenantIDs(), want)
	}
	d.RemoveTenants(func(string) bool { return true })
	if body, _ := d.Encode(); strings.Contains(string(body), "similarProperties") {
		t.Errorf("got %s, want no similarProperties", body)
	}
}

func TestDefaultStay_IsTomorrowNightInUTC(t *testing.T) {
	t.Parallel()
	kabul := time.FixedZone("Asia/Kabul", int(4.5*3600))
	for at, want := range map[time.Time]string{
		time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC):        "2026-11-21",
		time.Date(2026, 11, 20, 23, 59, 59, 999e6, time.UTC): "2026-11-21",
		time.Date(2026, 11, 21, 2, 0, 0, 0, kabul):           "2026-11-21", // still the 20th in UTC
		time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC):       "2027-01-01",
		time.Date(2028, 2, 28, 12, 0, 0, 0, time.UTC):        "2028-02-29",
	} {
		s := DefaultStay(at)
		if got := s.Dates.CheckIn.String(); got != want || s.Dates.Nights() != 1 {
			t.Errorf("at %s: got check-in %s, want %s and 1 night", at, got, want)
		}
		if faults := append(s.Dates.Validate(at), s.Occupancy.Validate()...); len(faults) > 0 {
			t.Errorf("at %s: got an invalid stay: %v", at, faults)
		}
	}
}

func TestAvailability_EncodeDecodeRoundTrip(t *testing.T) {
	t.Parallel()
	none, some := 0, 3
	q := upstream.AvailabilityQuery{PropertyID: hit(0).PropertyID, From: stay.DateOf(now), To: stay.DateOf(now).AddDays(2)}
	a := NewAvailability(q, []upstream.Day{
		{Date: q.From, Available: true, RoomsLeft: &some, CheapestMinor: "450000", Currency: "AFN"},
		{Date: q.To, RoomsLeft: &none},
	})
	body, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"propertyId":%q,"from":"2026-11-20","to":"2026-11-22","days":[`+
		`{"date":"2026-11-20","available":true,"roomsLeft":3,"cheapestMinor":"450000","currency":"AFN"},`+
		`{"date":"2026-11-22","available":false,"roomsLeft":0}],"degraded":[]}`, q.PropertyID)
	if string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	again, err := DecodeAvailability(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Days, again.Days); diff != "" || !again.HasPrice() {
		t.Errorf("days (- want + got), has price %t:\n%s", again.HasPrice(), diff)
	}
	again.MarkStale()
	if body, _ := again.Encode(); strings.Count(string(body), `"isStale":true`) != 1 {
		t.Errorf("got %s, want 1 stale price", body)
	}
	if empty := NewAvailability(q, nil); empty.HasPrice() {
		t.Error("an availability without days has a price")
	} else if body, _ := empty.Encode(); !strings.Contains(string(body), `"days":[]`) {
		t.Errorf("got %s, want an empty list of days", body)
	}
	if _, err := DecodeAvailability([]byte("[]")); err == nil {
		t.Error("DecodeAvailability accepted malformed JSON")
	}
}
