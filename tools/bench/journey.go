package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// mintScenarios starts the server of POST /handoff and fills its cache.
func (h *environment) mintScenarios(cookie string) (scenario, error) {
	hotel := h.data.Properties[0]
	mint := func() []byte {
		return request("POST", web.BasePath+"/handoff", fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,%s}`, hotel.Tenant.ID, hotel.ID, stayFields()),
			"Cookie", cookie, "Idempotency-Key", id.New(id.Request, time.Now()))
	}
	minting, err := h.startFunction("Handoff")
	if err != nil {
		return scenario{}, err
	}
	if _, _, err := minting.do(mint()); err != nil { // fills the cache
		return scenario{}, err
	}
	return scenario{name: "handoff, mint", server: minting, next: mint, writes: true}, nil
}

// journeyScenarios starts the servers that a guest uses from a hotel's page to the booking.
// Requests for one-time operations are new each time; expensive requests are created before each
// round.
func (h *environment) journeyScenarios(ctx context.Context, searching *server, cookie string) ([]scenario, error) {
	detail := request("GET", web.BasePath+"/hotels/"+h.data.Properties[0].ID, "", "Accept-Encoding", "gzip")
	looking, err := h.startFunction("Detail")
	if err != nil {
		return nil, err
	}
	if _, _, err := looking.do(detail); err != nil { // fills the cache
		return nil, err
	}
	minting, err := h.mintScenarios(cookie)
	if err != nil {
		return nil, err
	}
	consuming, err := h.startFunction("Consume")
	if err != nil {
		return nil, err
	}
	using := &preparedRequests{generate: func(n int) ([][]byte, error) { return h.consumeRequests(ctx, n) }}
	contests := []scenario{
		minting,
		{name: "detail, warm hit, gzip", server: looking, next: repeat(detail)},
		{name: "consume", server: consuming, next: using.next, prepare: using.fill, writes: true},
	}
	if !slices.ContainsFunc(web.Functions(), func(f *web.Function) bool { return f.Name == "WishlistAdd" }) {
		return contests, nil
	}
	add, err := h.startFunction("WishlistAdd")
	if err != nil {
		return nil, err
	}
	wishing := &preparedRequests{generate: func(n int) ([][]byte, error) { return wishlistAddRequests(searching, n) }}
	return append(contests, scenario{name: "wishlist, add", server: add, next: wishing.next, prepare: wishing.fill, writes: true}), nil
}

// preparedRequests are sent once each. A round ends early without further requests.
type preparedRequests struct {
	generate func(n int) ([][]byte, error)
	list     [][]byte
	sent     atomic.Int64
}

const preparedPerSecond = 6000 // requests prepared for each second of a round

func (p *preparedRequests) fill(round time.Duration) (err error) {
	p.sent.Store(0)
	p.list, err = p.generate(int(preparedPerSecond * round.Seconds()))
	return err
}

func (p *preparedRequests) next() []byte {
	if i := int(p.sent.Add(1)) - 1; i < len(p.list) {
		return p.list[i]
	}
	return nil
}

// consumeRequests writes n handoffs into Postgres without the function, and returns the requests by
// which a tenant's BFF consumes them.
func (h *environment) consumeRequests(ctx context.Context, n int) ([][]byte, error) {
	keys, err := handoff.ParseKeys(h.handoffKeys)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	bearer := "Bearer " + h.issuer.Token(tenantstub.Audience, tenantstub.Account, now)
	hotel := h.data.Properties[0]
	arrival := stay.DateOf(now.UTC()).AddDays(20)
	hash := fmt.Sprintf("sha256:%064d", 7)
	var all [][]byte
	for len(all) < n {
		b := &pgx.Batch{}
		for range min(500, n-len(all)) {
			e := ledger.Entry{
				Handoff: handoff.Handoff{
					ID: id.New(id.Handoff, now), GuestSessionID: id.New(id.Session, now), TenantID: hotel.Tenant.ID, PropertyID: hotel.ID,
					Dates: stay.Dates{CheckIn: arrival, CheckOut: arrival.AddDays(3)}, Adults: 2, Rooms: 1,
					Currency: "AFN", Locale: "ps-AF", MintedAt: now,
				},
				Fingerprint: hash, IPHash: hash,
			}
			token, err := keys.Sign(&e.Handoff)
			if err != nil {
				return nil, err
			}
			if err := ledger.Queue(b, e); err != nil {
				return nil, err
			}
			all = append(all, request("POST", "/internal/handoff/"+e.ID+"/consume", fmt.Sprintf(`{"token":%q,"consumedBy":"bench"}`, token),
				"Authorization", bearer, "Idempotency-Key", e.ID))
		}
		if err := h.db.SendBatch(ctx, b).Close(); err != nil {
			return nil, fmt.Errorf("bench: mint handoffs: %w", err)
		}
	}
	return all, nil
}

const wishesPerGuest = 90 // a wishlist holds 100 entries

// wishlistAddRequests returns n additions to wishlists. A new guest, created by a search, makes at
// most 90 additions.
func wishlistAddRequests(searching *server, n int) ([][]byte, error) {
	guests := make([]string, n/wishesPerGuest+1)
	for i := range guests {
		var err error
		if guests[i], _, err = searching.do(searchRequest(cityGeo)); err != nil {
			return nil, err
		}
	}
	all := make([][]byte, n)
	for i := range all {
		all[i] = request("POST", web.BasePath+"/wishlist", fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"source":"detail"}`,
			id.New(id.Property, time.Now()), id.New(id.Tenant, time.Now())), "Cookie", guests[i%len(guests)])
	}
	return all, nil
}
