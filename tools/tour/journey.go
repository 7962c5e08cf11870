package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// stay returns random dates, so that no cache has a search for them.
func stay() map[string]any {
	day := time.Now().UTC().AddDate(0, 0, 20+rand.IntN(400))
	return map[string]any{
		"dates": map[string]any{
			"checkIn": day.Format(time.DateOnly), "checkOut": day.AddDate(0, 0, 1+rand.IntN(7)).Format(time.DateOnly),
		},
		"occupancy": map[string]any{"adults": 2, "children": 0, "rooms": 1},
	}
}

// with returns a copy of m with further members: name, value, name, value, …
func with(m map[string]any, members ...any) map[string]any {
	out := map[string]any{}
	for name, value := range m {
		out[name] = value
	}
	for i := 0; i+1 < len(members); i += 2 {
		out[members[i].(string)] = members[i+1]
	}
	return out
}

func city(name string) map[string]any { return map[string]any{"mode": "city", "city": name} }

// list is the part of a search response that the tour reads.
type list struct {
	Listings []card `json:"listings"`
	Degraded []struct {
		Part   string `json:"part"`
		Reason string `json:"reason"`
	} `json:"degraded"`
}

type card struct {
	PropertyID string         `json:"propertyId"`
	TenantID   string         `json:"tenantId"`
	Rate       map[string]any `json:"rateSnapshot"`
	Geo        struct {
		Lat float64 `json:"lat"`
		Lng float64 `json:"lng"`
	} `json:"geo"`
}

func (l *list) rates() (n int) {
	for _, c := range l.Listings {
		if c.Rate != nil {
			n++
		}
	}
	return n
}

func (l *list) degraded() string {
	parts := []string{}
	for _, d := range l.Degraded {
		parts = append(parts, d.Part+" ("+d.Reason+")")
	}
	if len(parts) == 0 {
		return "nothing degraded"
	}
	return "degraded: " + strings.Join(parts, ", ")
}

// search sends a search and decodes its list.
func (t *tour) search(query map[string]any) (*answer, list, error) {
	a, err := t.send(http.MethodPost, api+"/search", query)
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	if err != nil {
		return a, list{}, err
	}
	l, err := decode[list](a)
	return a, l, err
}

// calls returns the number of calls to search-aggregation.
func (t *tour) calls() (n int, err error) {
	var u struct {
		Calls int `json:"calls"`
	}
	err = t.get("/upstreams/search", &u)
	return u.Calls, err
}

// journey goes from a search to a handoff that is used once.
func journey(t *tour) {
	query := with(stay(), "geo", city("Kabul"))
	var hotel card
	var sessionID, link, token, handoffID, etag string
	var minted []byte

	t.step("Search hotels in Kabul", "200, X-Cache: MISS, a cookie, at least one hotel", func() (string, error) {
		a, l, err := t.search(query)
		if err != nil {
			return "", err
		}
		got := fmt.Sprintf("%d, X-Cache: %s, %d hotels, %d with rates", a.status, a.header.Get("X-Cache"), len(l.Listings), l.rates())
		if a.header.Get("X-Cache") != "MISS" || len(l.Listings) == 0 || t.cookie == "" {
			return got, errors.New("not a new answer with hotels and a cookie")
		}
		hotel = l.Listings[0]
		return got, nil
	})
	t.step("Search again", "200, X-Cache: HIT, no call of search-aggregation", func() (string, error) {
		before, err := t.calls()
		if err != nil {
			return "", err
		}
		a, _, err := t.search(query)
		if err != nil {
			return "", err
		}
		after, err := t.calls()
		got := fmt.Sprintf("%d, X-Cache: %s, %d calls", a.status, a.header.Get("X-Cache"), after-before)
		if err == nil && (a.header.Get("X-Cache") != "HIT" || after != before) {
			err = errors.New("not answered from the cache")
		}
		return got, err
	})
	t.step("Look at the map around the first hotel", "200, at least one pin", func() (string, error) {
		box := map[string]any{
			"swLat": hotel.Geo.Lat - 0.05, "swLng": hotel.Geo.Lng - 0.05, "neLat": hotel.Geo.Lat + 0.05, "neLng": hotel.Geo.Lng + 0.05,
		}
		a, err := t.send(http.MethodPost, api+"/search/map",
			with(stay(), "geo", map[string]any{"mode": "bounding-box", "boundingBox": box}, "zoom", 12))
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		m, err := decode[struct {
			Pins []card `json:"pins"`
		}](a)
		if err == nil && len(m.Pins) == 0 {
			err = errors.New("no pins")
		}
		return fmt.Sprintf("%d, %d pins", a.status, len(m.Pins)), err
	})
	page := api + "/hotels/" + hotel.PropertyID + "?currency=USD&locale=en"
	t.step("Open the hotel's page, a shared answer", "200, Cache-Control: public, ETag, no cookie", func() (string, error) {
		a, err := t.send(http.MethodGet, page, nil)
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		etag = a.header.Get("ETag")
		if !strings.HasPrefix(a.header.Get("Cache-Control"), "public") || etag == "" || a.header.Get("Set-Cookie") != "" {
			err = errors.New("not a shared answer")
		}
		return fmt.Sprintf("%d, Cache-Control: %s", a.status, a.header.Get("Cache-Control")), err
	})
	t.step("Open the page again with its ETag", "304", func() (string, error) {
		a, err := t.send(http.MethodGet, page, nil, "If-None-Match", etag)
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusNotModified, "")
	})
	t.step("Ask which nights are free", "200, days", func() (string, error) {
		from := time.Now().UTC().AddDate(0, 0, 10)
		a, err := t.send(http.MethodGet, fmt.Sprintf("%s/hotels/%s/availability?from=%s&to=%s", api, hotel.PropertyID,
			from.Format(time.DateOnly), from.AddDate(0, 0, 6).Format(time.DateOnly)), nil)
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		days, err := decode[struct {
			Days []any `json:"days"`
		}](a)
		if err == nil && len(days.Days) == 0 {
			err = errors.New("no days")
		}
		return fmt.Sprintf("%d, %d days", a.status, len(days.Days)), err
	})
	ids := map[string]any{"propertyId": hotel.PropertyID, "tenantId": hotel.TenantID}
	t.step("Save the hotel on the wishlist", "201", func() (string, error) {
		a, err := t.send(http.MethodPost, api+"/wishlist", with(ids, "source", "detail"))
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusCreated, "")
	})
	t.step("Read the session", "200, the hotel among wishlistRefs", func() (string, error) {
		a, err := t.send(http.MethodGet, api+"/session", nil)
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		s, err := decode[struct {
			ID       string `json:"id"`
			Wishlist []card `json:"wishlistRefs"`
		}](a)
		sessionID = s.ID
		if err == nil && (len(s.Wishlist) != 1 || s.Wishlist[0].PropertyID != hotel.PropertyID) {
			err = errors.New("the hotel is missing")
		}
		return fmt.Sprintf("%d, %s, %d on the wishlist", a.status, s.ID, len(s.Wishlist)), err
	})
	t.step("Report a click", "202, one event accepted", func() (string, error) {
		a, err := t.send(http.MethodPost, api+"/telemetry/click", with(ids, "kind", "listing-card", "position", 1, "page", 1))
		if err == nil {
			err = a.want(http.StatusAccepted, "")
		}
		if err == nil && !bytes.Contains(a.body, []byte(`"accepted":1`)) {
			err = fmt.Errorf("the body is %s", a.body)
		}
		if err != nil {
			return "", err
		}
		return a.says(), nil
	})
	key := fmt.Sprintf("tour-%d", time.Now().UnixNano())
	wish := with(stay(), "propertyId", hotel.PropertyID, "tenantId", hotel.TenantID)
	t.step("Mint a handoff", "201, a link with a token", func() (string, error) {
		a, err := t.send(http.MethodPost, api+"/handoff", wish, "Idempotency-Key", key)
		if err == nil {
			err = a.want(http.StatusCreated, "")
		}
		if err != nil {
			return "", err
		}
		h, err := decode[struct {
			ID  string `json:"handoffId"`
			URL string `json:"url"`
		}](a)
		if err != nil {
			return "", err
		}
		u, err := url.Parse(h.URL)
		if err == nil && u.Query().Get("h") == "" {
			err = errors.New("the link has no token")
		}
		if err != nil {
			return "", err
		}
		minted, handoffID, token, link = a.body, h.ID, u.Query().Get("h"), u.Host+u.Path
		return fmt.Sprintf("%d, %s, https://%s?h=…", a.status, handoffID, link), nil
	})
	t.step("Repeat the request with the same key", "201, Idempotency-Replayed: true, the same bytes", func() (string, error) {
		a, err := t.send(http.MethodPost, api+"/handoff", wish, "Idempotency-Key", key)
		if err == nil {
			err = a.want(http.StatusCreated, "")
		}
		if err == nil && (a.header.Get("Idempotency-Replayed") != "true" || !bytes.Equal(a.body, minted)) {
			err = errors.New("not the first answer")
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d, Idempotency-Replayed: %s", a.status, a.header.Get("Idempotency-Replayed")), nil
	})
	t.step("Use the key for another stay", "422 IDEMPOTENCY_KEY_REUSED", func() (string, error) {
		other := with(wish, "occupancy", map[string]any{"adults": 1, "children": 0, "rooms": 1})
		a, err := t.send(http.MethodPost, api+"/handoff", other, "Idempotency-Key", key)
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusUnprocessableEntity, "IDEMPOTENCY_KEY_REUSED")
	})
	t.step("Arrive at the tenant, which consumes the handoff", "200, consumedAt", func() (string, error) {
		a, err := t.send(http.MethodPost, local+"/tenant/bootstrap", map[string]any{"token": token})
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		used, err := decode[struct {
			ID         string `json:"handoffId"`
			ConsumedAt string `json:"consumedAt"`
		}](a)
		if err == nil && (used.ID != handoffID || used.ConsumedAt == "") {
			err = errors.New("not this handoff")
		}
		return fmt.Sprintf("%d, consumedAt %s", a.status, used.ConsumedAt), err
	})
	cursor := ""
	t.step("Arrive a second time with the same token", "409 HANDOFF_REPLAYED", func() (string, error) {
		var err error
		if cursor, err = t.cursor(); err != nil {
			return "", err
		}
		a, err := t.send(http.MethodPost, local+"/tenant/bootstrap", map[string]any{"token": token})
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusConflict, "HANDOFF_REPLAYED")
	})
	t.relay()
	t.step("Read the report of the replay", "bot_suspected.v1 about this guest's session", func() (string, error) {
		return t.poll(5*time.Second, func() (string, error) {
			events, err := t.published("bot_suspected.v1", cursor)
			for _, e := range events {
				if err == nil && e.Data.Payload["guestSessionId"] == sessionID {
					return "bot_suspected.v1 of " + sessionID, nil
				}
			}
			return "", errors.Join(err, errors.New("no such event"))
		})
	})
}

// published is one message of a topic.
type published struct {
	Data struct {
		Payload map[string]any `json:"payload"`
	} `json:"data"`
}

// published reads the events of a subject after a cursor, and prints the request.
func (t *tour) published(subject, since string) ([]published, error) {
	a, err := t.send(http.MethodGet, local+"/telemetry?subject="+subject+"&since="+since, nil)
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	if err != nil {
		return nil, err
	}
	m, err := decode[struct {
		Messages []published `json:"messages"`
	}](a)
	return m.Messages, err
}

// cursor returns the current end of the published events.
func (t *tour) cursor() (string, error) {
	var page struct {
		Messages []any  `json:"messages"`
		Cursor   string `json:"cursor"`
	}
	for since := "0"; ; since = page.Cursor {
		page.Messages = nil
		if err := t.get("/telemetry?since="+since, &page); err != nil {
			return "", err
		}
		if len(page.Messages) == 0 {
			return page.Cursor, nil
		}
	}
}

// relay publishes all committed events. The development server runs a relay all the time; this call
// waits for it.
func (t *tour) relay() {
	t.step("Drain the outbox", "200, status ok", func() (string, error) {
		a, err := t.send(http.MethodPost, local+"/jobs/relay", nil)
		if err == nil {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return "", err
		}
		job, err := decode[struct {
			Status string `json:"status"`
		}](a)
		return fmt.Sprintf("%d, status %s", a.status, job.Status), err
	})
}
