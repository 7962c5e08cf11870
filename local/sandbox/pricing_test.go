package sandbox

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func TestQuotes_ReportCurrencyConversion(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	p := data.City("Kabul").Properties[0]
	for currency, policy := range map[money.Currency]string{money.AFN: "tenant", money.EUR: "user-preferred", "JPY": "fallback"} {
		quotes, err := r.Pricing.Preview(t.Context(), upstream.QuoteRequest{
			Properties: []upstream.PropertyRef{{PropertyID: p.ID, TenantID: p.Tenant.ID}},
			Dates:      threeNights(), Occupancy: couple(), Currency: currency, Locale: "en",
			Calendar: &upstream.CalendarSpan{From: date("2026-12-01"), Days: 7},
		})
		q := quotes[p.ID]
		if err != nil || q.CurrencyDisplayPolicy != policy || (q.FXSnapshotID != "") != (policy == "user-preferred") {
			t.Errorf("%s: %+v %v", currency, q, err)
		}
		if shown := map[string]string{"tenant": "AFN", "user-preferred": "EUR", "fallback": "USD"}[policy]; q.Currency != shown {
			t.Errorf("%s is shown in %s", currency, q.Currency)
		}
		if !q.CapturedAt.Equal(capturedAt) || !q.TTLExpiresAt.Equal(capturedAt.Add(time.Minute)) {
			t.Errorf("captured %v until %v", q.CapturedAt, q.TTLExpiresAt)
		}
		if len(q.Calendar) < 5 {
			t.Errorf("calendar %+v", q.Calendar)
		}
	}
}

func TestQuotes_OnlyOwnedAndAvailable(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	p, q := data.City("Kabul").Properties[0], data.City("Lahore").Properties[0]
	request := upstream.QuoteRequest{
		Properties: []upstream.PropertyRef{
			{PropertyID: p.ID, TenantID: q.Tenant.ID},
			{PropertyID: "ppt_01KA2X5T7QJ0V3M8N4R6B9CWDE", TenantID: q.Tenant.ID},
			{PropertyID: q.ID, TenantID: q.Tenant.ID},
		},
		Dates: threeNights(), Occupancy: couple(), Currency: money.USD, Locale: "en",
	}
	quotes, err := r.Pricing.Preview(t.Context(), request)
	if err != nil || len(quotes) != 1 || quotes[q.ID].PropertyID != q.ID {
		t.Errorf("%+v %v", quotes, err)
	}
	for day := range 500 { // every property has a sold-out week
		request.Dates = stay.Dates{CheckIn: date("2026-12-01").AddDays(day), CheckOut: date("2026-12-02").AddDays(day)}
		if !isAvailable(q, request.Dates, 1) {
			quotes, err := r.Pricing.Preview(t.Context(), request)
			if err != nil || len(quotes) != 0 {
				t.Errorf("sold out, and yet %+v %v", quotes, err)
			}
			return
		}
	}
}

func TestTariff_NightsAddUpToTotal(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	p := data.Properties[0]
	week := stay.Dates{CheckIn: date("2026-12-01"), CheckOut: date("2026-12-08")}
	for currency, rate := range exchangeRates {
		tariff := newTariff(week, couple(), rate)
		var sum uint64
		lowest := ^uint64(0)
		for n := range 7 {
			night := nightPrice(p, dayFactor(week.CheckIn.AddDays(n)), occupancyFactor(couple()), rate)
			sum += night
			lowest = min(lowest, night)
			if night%rate.roundTo != 0 || night == 0 {
				t.Errorf("%s: a night costs %d", currency, night)
			}
		}
		if tariff.total(p) != sum || tariff.cheapest(p) != lowest {
			t.Errorf("%s: total %d of %d, cheapest %d of %d", currency, tariff.total(p), sum, tariff.cheapest(p), lowest)
		}
	}
	usd := exchangeRates["USD"]
	if two, four := newTariff(week, couple(), usd).total(p), newTariff(week, stay.Occupancy{Adults: 4, Rooms: 2}, usd).total(p); four < 2*two-100 || four > 2*two+100 {
		t.Errorf("two rooms cost %d, one %d", four, two)
	}
	babies := stay.Occupancy{Adults: 2, Children: 1, Rooms: 1, ChildrenAges: []int{1}}
	if newTariff(week, babies, usd).total(p) != newTariff(week, couple(), usd).total(p) {
		t.Error("a child under 4 changes the price")
	}
	dearest := &dataset.Property{NightMicroUSD: 10_000_000_000}
	if got := nightPrice(dearest, 2000, 20_000, exchangeRates["IRR"]); got != 44_000_000_000_000 {
		t.Errorf("the most expensive possible night: got %d", got)
	}
}

func TestProperty_DescribedInEveryLanguage(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	p := data.City("Tehran").Properties[0]
	seen := map[string]bool{}
	for _, tag := range []string{"en", "fr", "ar", "fa-IR", "ps-AF", "ur-PK", "ru", "tg-TJ"} {
		d, err := r.Property.Get(t.Context(), p.ID, locale.Tag(tag))
		if err != nil || seen[d.Policies.Cancellation] || seen[d.Description] || strings.Contains(d.Description+d.Policies.CheckIn, "%!") {
			t.Errorf("%s: %+v %v", tag, d, err)
		}
		seen[d.Policies.Cancellation], seen[d.Description] = true, true
		if len(d.Rooms) == 0 || len(d.Amenities) != len(p.Amenities) || !d.Photos[0].IsHero || d.TenantID != p.Tenant.ID {
			t.Errorf("%s: %+v", tag, d)
		}
	}
	if _, err := r.Property.Get(t.Context(), "ppt_01KA2X5T7QJ0V3M8N4R6B9CWDE", "en"); err != upstream.ErrNotFound {
		t.Error(err)
	}
}

func TestBrandPeek_ReturnsBrandOfEachTenant(t *testing.T) {
	t.Parallel()
	data := dataset.Embedded()
	r := startSandbox(t, data)
	for _, tenant := range data.Tenants[:40] {
		b, err := r.Theme.Brand(t.Context(), tenant.ID)
		if err != nil || b.TenantSlug != tenant.Slug || b.PrimaryColor != tenant.Color {
			t.Errorf("%+v %v", b, err)
		}
	}
	if _, err := r.Theme.Brand(t.Context(), "tnt_01KA2X5T7QJ0V3M8N4R6B9CWDE"); err != upstream.ErrNotFound {
		t.Error(err)
	}
}

func TestLabels_CompleteInEveryLanguage(t *testing.T) {
	t.Parallel()
	check := func(name string, l label) {
		for _, lang := range dataset.Languages {
			if l[lang] == "" {
				t.Errorf("%s has no %s", name, lang)
			}
		}
	}
	for code, a := range labels.Amenities {
		check(code, a.Label)
		if a.Category == "" {
			t.Errorf("%s has no category", code)
		}
	}
	for _, group := range []map[string]label{labels.PropertyType, labels.Cancellation, labels.Quarters, labels.Rooms} {
		for name, l := range group {
			check(name, l)
		}
	}
	for name, l := range map[string]label{"stars": labels.Stars, "rating": labels.RatingFrom, "description": labels.Description,
		"photo": labels.Photo, "checkIn": labels.CheckIn, "checkOut": labels.CheckOut} {
		check(name, l)
	}
	for _, p := range dataset.Embedded().Properties {
		for _, code := range p.Amenities {
			if labels.Amenities[code].Label == nil {
				t.Errorf("amenity %s has no label", code)
			}
		}
	}
}
