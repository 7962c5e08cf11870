package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func hit(n int) *upstream.Hit {
	return &upstream.Hit{
		PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n%3), TenantSlug: "kabul-grand",
		Name: upstream.Localized{Default: `Hotel "Quoted" ` + "<&>", Localized: map[string]string{"ps-AF": "هوټل", "fa-AF": "هتل"}},
		City: "Kabul", Country: "AF", Geo: geo.Point{Lat: 34.5, Lng: 69.2},
		Thumbnail:         upstream.Image{URL: "https://img.example/1.jpg", Alt: `"isStale":false`},
		AmenityHighlights: []string{"wifi", "breakfast", "parking", "gym", "pool", "spa"},
	}
}

func quote(captured time.Time) *upstream.Quote {
	return &upstream.Quote{
		CheapestNightlyMinor: "450000", TotalForStayMinor: "1350000", Currency: "AFN", CurrencyDisplayPolicy: "user-preferred",
		CapturedAt: captured, TTLExpiresAt: captured.Add(time.Minute),
	}
}

func page(t testing.TB, items int) *Page {
	t.Helper()
	p := &Page{Member: "listings", ResultCount: 47, Place: &upstream.Place{City: "Kabul", Country: "AF"}}
	for n := range items {
		item, err := NewItem(hit(n).TenantID, NewCard(hit(n), nil, ""))
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if err := item.SetRate(NewRateSnapshot(quote(now.Add(time.Duration(n)*time.Second)), now)); err != nil {
				t.Fatal(err)
			}
		}
		p.Items = append(p.Items, item)
	}
	var err error
	if p.Extra, err = AppendMember(nil, "queryHash", "sha256:abc"); err != nil {
		t.Fatal(err)
	}
	return p
}

// listing is the response as a client decodes it.
type listing struct {
	Listings []struct {
		PropertyID   string        `json:"propertyId"`
		TenantID     string        `json:"tenantId"`
		RateSnapshot *RateSnapshot `json:"rateSnapshot"`
	} `json:"listings"`
	ResultCount int        `json:"resultCount"`
	Degraded    []Degraded `json:"degraded"`
	QueryHash   string     `json:"queryHash"`
}

func decodeListing(t *testing.T, p *Page) (l listing) {
	t.Helper()
	body, _, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(append(body, '}'), &l); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return l
}

func roundTrip(t *testing.T, p *Page) *Page {
	t.Helper()
	body, index, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	opened, err := DecodePage(body, index, p.TenantIDs())
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestPage_EncodeDecodeRoundTrip(t *testing.T) {
	t.Parallel()
	for _, items := range []int{0, 1, 20, 250} {
		p := page(t, items)
		p.Degraded = []Degraded{{"theme", "timeout"}}
		again := roundTrip(t, p)
		if diff := cmp.Diff(decodeListing(t, p), decodeListing(t, again)); diff != "" {
			t.Errorf("%d items (- want + got):\n%s", items, diff)
		}
		if diff := cmp.Diff(p.Place, again.Place); diff != "" {
			t.Errorf("place (- want + got):\n%s", diff)
		}
		body, _, _ := p.Encode()
		twice, _, _ := again.Encode()
		if string(body) != string(twice) {
			t.Errorf("%d items: got %s, want %s", items, twice, body)
		}
	}
}

func TestPage_RemoveTenantsDropsItems(t *testing.T) {
	t.Parallel()
	p := roundTrip(t, page(t, 9))
	removedTenant := hit(1).TenantID
	p.RemoveTenants(func(tenant string) bool { return tenant == removedTenant })
	l := decodeListing(t, roundTrip(t, p))
	if len(l.Listings) != 6 || l.ResultCount != 44 {
		t.Errorf("got %d cards and result count %d, want 6 and 44", len(l.Listings), l.ResultCount)
	}
	for _, card := range l.Listings {
		if card.TenantID == removedTenant {
			t.Errorf("property %s of the removed tenant is on the page", card.PropertyID)
		}
	}
}

func TestPage_MarksOnlyExpiredRatesStale(t *testing.T) {
	t.Parallel()
	p := roundTrip(t, page(t, 6)) // rates of 0, 2 and 4, two seconds apart, capped at 60 s from now
	p.Items[0].RateFreshUntil = now.Add(30 * time.Second)
	p.MarkStale(now.Add(31 * time.Second))
	l := decodeListing(t, p)
	for n, want := range map[int]bool{0: true, 2: false, 4: false} {
		if got := l.Listings[n].RateSnapshot.IsStale; got != want {
			t.Errorf("card %d: got stale %t, want %t", n, got, want)
		}
	}
	if body, _, _ := p.Encode(); !strings.Contains(string(body), `\"isStale\":false`) {
		t.Error("MarkStale changed the text of a hotel")
	}
}

func TestNewRateSnapshot_FreshForAtMostOneMinute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q    upstream.Quote
		want time.Time
	}{
		"expiry from pricing":    {upstream.Quote{CapturedAt: now, TTLExpiresAt: now.Add(20 * time.Second)}, now.Add(20 * time.Second)},
		"a minute after capture": {upstream.Quote{CapturedAt: now.Add(-10 * time.Second), TTLExpiresAt: now.Add(time.Hour)}, now.Add(50 * time.Second)},
		"clock of pricing ahead": {upstream.Quote{CapturedAt: now.Add(time.Hour), TTLExpiresAt: now.Add(2 * time.Hour)}, now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, until := NewRateSnapshot(&c.q, now)
			if !until.Equal(c.want) || snapshot.TTLExpiresAt != timestamp.Format(c.want) || snapshot.IsStale {
				t.Errorf("got fresh until %s, snapshot %+v, want %s", until, snapshot, c.want)
			}
		})
	}
}

func TestItem_SpotlightedPinHasRate(t *testing.T) {
	t.Parallel()
	item, err := NewItem("t", NewPin(hit(1), nil))
	if err != nil {
		t.Fatal(err)
	}
	snapshot, _ := NewRateSnapshot(quote(now), now)
	item.SetSpotlightRate(snapshot)
	p := &Page{Member: "pins", Items: []Item{item}}
	body, _, _ := p.Encode()
	if !strings.Contains(string(body), `"brandColor":"#6b7280","cheapestNightlyMinor":"450000","currency":"AFN"}`) {
		t.Errorf("got %s, want the rate members on the pin", body)
	}
}

func TestNewCard_Badges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serving, own string
		badges       []string
		want         []string
	}{
		"near":                   {"me-central2", "asia-south1", nil, []string{}},
		"far":                    {"europe-southwest1", "asia-south1", nil, []string{"crossRegionDelivery"}},
		"unknown region":         {"moon-1", "asia-south1", nil, []string{}},
		"unknown badges dropped": {"asia-south1", "asia-south1", []string{"newProperty", "bestDeal", "crossRegionDelivery", "shariaCompliant"}, []string{"newProperty", "shariaCompliant"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := hit(1)
			h.ServingRegion, h.Badges = c.serving, c.badges
			got := NewCard(h, nil, c.own).Badges
			if len(got) == 0 && len(c.want) == 0 {
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("badges (- want + got):\n%s", diff)
			}
		})
	}
}

func TestNewCard_FiveAmenitiesAndNeutralBrand(t *testing.T) {
	t.Parallel()
	card := NewCard(hit(1), nil, "")
	if len(card.AmenityHighlights) != 5 || !card.BrandPeek.Neutral {
		t.Errorf("got card %+v, want 5 amenities and a neutral brand", card)
	}
	brand := &upstream.Brand{PrimaryColor: "#aabbcc", LogoURL: "https://l.example/x.svg", BrandName: upstream.Localized{Default: "B"}}
	if card = NewCard(hit(1), brand, ""); card.BrandPeek.Neutral || card.BrandPeek.PrimaryColor != "#aabbcc" {
		t.Errorf("got brand %+v, want the brand of the tenant", card.BrandPeek)
	}
}

func FuzzDecodePage(f *testing.F) {
	body, index, err := page(f, 3).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, index)
	f.Add(body, []byte(`{"m":"listings","i":99999999999,"r":-1}`+"\n"))
	f.Fuzz(func(t *testing.T, body, index []byte) {
		p, err := DecodePage(body, index, []string{"a", "b", "c"}) // an error or a page, never a panic
		if err == nil {
			p.MarkStale(now)
			p.RemoveTenants(func(string) bool { return true })
		}
	})
}
