package sandbox

import (
	"net/http"
	"strconv"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

type hotel struct {
	Hit        hit `json:"hit"`
	Popularity struct {
		BookedLast24h int `json:"bookedLast24h"`
		ViewedLast1h  int `json:"viewedLast1h"`
	} `json:"popularity"`
	ReviewSummary rating `json:"reviewSummary"`
	Similar       []hit  `json:"similar"`
}

const maxSimilar = 4

// hotel responds with search's view of a property and similar properties.
func (s *Sandbox) hotel(r *http.Request) (any, error) {
	p := s.data.Property(r.PathValue("id"))
	if p == nil {
		return nil, notFound
	}
	locale := r.URL.Query().Get("locale")
	if locale == "" {
		return nil, badRequest("locale is missing")
	}
	h := hotel{Hit: newHit(p, locale), ReviewSummary: rating{float64(p.Rating) / 10, p.Reviews}, Similar: []hit{}}
	h.Popularity.BookedLast24h, h.Popularity.ViewedLast1h = p.BookedLastDay, p.ViewedLastHr
	for _, other := range s.similar(p) {
		h.Similar = append(h.Similar, newHit(other, locale))
	}
	return h, nil
}

// similar returns at most 4 properties within 15 km: same kind first, then nearest first.
func (s *Sandbox) similar(p *dataset.Property) []*dataset.Property {
	var same, others []*dataset.Property
	for _, near := range s.data.Near(p.Row.Point, 15) {
		switch {
		case near == p:
		case near.Row.Kind == p.Row.Kind:
			same = append(same, near)
		default:
			others = append(others, near)
		}
	}
	all := append(same, others...)
	return all[:min(len(all), maxSimilar)]
}

type day struct {
	Date          stay.Date `json:"date"`
	Available     bool      `json:"available"`
	RoomsLeft     *int      `json:"roomsLeft,omitzero"`
	CheapestMinor string    `json:"cheapestMinor,omitzero"`
	Currency      string    `json:"currency,omitzero"`
}

const maxDays = 62

// availability responds with rooms and price of each night, in the property's own currency, for at
// most 62 days.
func (s *Sandbox) availability(r *http.Request) (any, error) {
	p := s.data.Property(r.PathValue("id"))
	if p == nil {
		return nil, notFound
	}
	q := r.URL.Query()
	from, errFrom := stay.ParseDate(q.Get("from"))
	to, errTo := stay.ParseDate(q.Get("to"))
	if errFrom != nil || errTo != nil || to.Compare(from) < 0 || to.DaysSince(from) >= maxDays {
		return nil, badRequest("from and to must be at most %d days", maxDays)
	}
	var o stay.Occupancy
	for name, into := range map[string]*int{"adults": &o.Adults, "children": &o.Children, "rooms": &o.Rooms} {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			return nil, badRequest("%s is not a number", name)
		}
		*into = n
	}
	if len(o.Validate()) > 0 {
		return nil, badRequest("adults, children or rooms are out of range")
	}
	currency := localCurrency(p.Country)
	days := []day{}
	for date := from; date.Compare(to) <= 0; date = date.AddDays(1) {
		left := roomsLeft(p, dayNumber(date))
		d := day{Date: date, Available: left >= o.Rooms}
		if left <= 10 { // large numbers are not reported
			d.RoomsLeft = &left
		}
		if d.Available {
			d.CheapestMinor, d.Currency = formatMinor(nightPrice(p, dayFactor(date), occupancyFactor(o), exchangeRates[currency])), currency
		}
		days = append(days, d)
	}
	return struct {
		Days []day `json:"days"`
	}{days}, nil
}
