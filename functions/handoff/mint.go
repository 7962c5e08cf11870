package handoff

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Mint handles POST /handoff. Safe for concurrent use.
type Mint struct {
	guests      *guest.Controller
	cache       *cache.Cache
	parts       *compose.Fetcher
	idempotency *idempotency.Store
	keys        handoff.Keys
	link        handoff.Link
	now         func() time.Time
}

const route = "POST /handoff"

type mintResponse struct {
	HandoffID  string `json:"handoffId"`
	URL        string `json:"url"` // contains the token: never logged
	ExpiresAt  string `json:"expiresAt"`
	TTLSeconds int    `json:"ttlSeconds"`
}

// Serve answers POST /handoff: each Idempotency-Key of a session mints a single handoff, answered
// by 201 with the booking URL. A repeated key gets the same bytes for 24 h. The answer is personal
// (private, no-store). web.Budget bounds the request to 2.5 s.
//
// With warm entries of property and brand the cost is two Redis round trips of at most 100 ms each,
// for the reads and for the copy of the answer, and a Postgres transaction in a single round trip
// of at most 1 s. A cold entry costs a call of property-service (up to 2 s) or theme-config (750
// ms), side by side. A repetition is charged as a read, which costs a second Redis round trip, and
// uses Postgres only if Redis lost the copy of the answer. A new session, the score of a bot and a
// stale copy of the suspended tenants cost up to 300 ms of Postgres each.
//
// Failures:
//   - Redis: Postgres alone deduplicates. A new key is 503 in a process that has never read the
//     suspended tenants, from Redis or from Postgres.
//   - Postgres: 503. Nothing is minted, unless only the reply to the commit was lost; repeat with
//     the same key.
//   - property-service, without a cached owner: 503, or 504 when time ran out.
//   - theme-config: the slug of property-service.
//
// A malformed request is 400, 413 or 422 and costs a Redis round trip too; no key is 400. A client
// over a limit or with the score of a bot is 429. A property of another tenant is 404; a suspended
// tenant is 403. A session cleared meanwhile is a retriable 503, after up to 1.5 s for the rest of
// the erasure. A key in use is polled every 25 ms for up to 2 s, then 409; a key of another body is
// 422. An error is not recorded under the key.
func (m *Mint) Serve(w http.ResponseWriter, r *http.Request) error {
	in, past, request, err := m.parseRequest(r)
	if err != nil {
		return m.guests.CountRejected(w, r, err)
	}
	var claim *idempotency.ClaimAttempt
	var prefetched prefetchedParts
	ctx, guest, err := m.guests.BeginRetry(w, r, func(ctx context.Context, pipe redis.Pipeliner, s *session.Request) {
		prefetched.owner = m.cache.Enqueue(ctx, pipe, m.parts.OwnerKey(in.PropertyID))
		prefetched.brand = m.cache.Enqueue(ctx, pipe, m.parts.BrandKey(in.TenantID))
		if s.ID != "" {
			request.SessionID = s.ID
			claim = m.idempotency.Enqueue(ctx, pipe, request)
		}
	}, func() bool { return claim.IsRetry() })
	if err != nil {
		m.idempotency.Cancel(ctx, claim)
		return err
	}
	request.SessionID = guest.ID
	done := web.FromContext(ctx).Phase("mint")
	answer, pendingCopy, err := m.idempotency.Do(ctx, request, claim, func(ctx context.Context) (idempotency.Response, *pgx.Batch, error) {
		if len(past) > 0 {
			return idempotency.Response{}, nil, problem.Invalid(past...)
		}
		if err := guest.ChargeRetry(ctx, w); err != nil {
			return idempotency.Response{}, nil, err
		}
		return m.prepare(ctx, r, guest, prefetched, in)
	})
	done()
	if ledger.IsTenantSuspended(err) {
		return suspendedProblem(err)
	}
	if err != nil {
		return m.guests.HandleCleared(ctx, guest, err)
	}
	m.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { pendingCopy.Enqueue(ctx, pipe) })
	if answer.Replayed {
		web.FromContext(ctx).AddLogField("replayed", true)
		w.Header().Set(idempotency.ReplayedHeader, "true")
	}
	writeResponse(w, answer)
	return nil
}

// parseRequest decodes and validates the body and the Idempotency-Key. past holds the faults of
// past dates, which refuse a new handoff only: a repetition after midnight still gets the first
// answer. Errors are problems.
func (m *Mint) parseRequest(r *http.Request) (in *request, past []problem.FieldError, key idempotency.Request, err error) {
	in = &request{Occupancy: stay.UnsetOccupancy()}
	if err = web.Decode(r, in); err != nil {
		return nil, nil, key, err
	}
	key.Route = route
	if key.Key, err = idempotency.RequiredKey(r.Header); err != nil {
		return nil, nil, key, err
	}
	if past, err = in.check(m.now()); err != nil {
		return nil, nil, key, err
	}
	key.Digest, err = idempotency.Digest(in)
	return in, past, key, err
}

// writeResponse writes the recorded answer byte for byte.
func writeResponse(w http.ResponseWriter, answer idempotency.Response) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer") // the URL goes to the tenant and nowhere else
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer.Body)))
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // a client that hung up can repeat the request with its key
}

// prepare checks tenant and property, signs the token, and returns the answer with the statements
// to commit: the ledger's row, and the event or, for a guest without consent, the refusal. It costs
// at most one call of property-service and of theme-config, side by side. Errors are problems, or
// errors of signing and encoding.
func (m *Mint) prepare(ctx context.Context, r *http.Request, guest *guest.Guest, prefetched prefetchedParts, in *request) (a idempotency.Response, b *pgx.Batch, err error) {
	switch {
	case !guest.Suspended.Known():
		return a, nil, problem.New(problem.UpstreamUnavailable, "Bookings cannot be passed on at present. Please try again in a moment.", nil).WithRetryAfter(time.Second)
	case guest.Suspended.Has(in.TenantID):
		return a, nil, suspendedProblem(nil)
	}
	slug, err := m.slug(ctx, prefetched, in)
	if err != nil {
		return a, nil, err
	}
	e := m.newEntry(guest, in)
	token, err := m.keys.Sign(&e.Handoff)
	if err != nil {
		return a, nil, err
	}
	b = &pgx.Batch{}
	if err := ledger.Queue(b, e); err != nil {
		return a, nil, err
	}
	if err := guest.QueueEvents(ctx, b, newHandoffInitiated(&e, slug, r.Referer())); err != nil {
		return a, nil, err
	}
	body, err := json.Marshal(mintResponse{
		HandoffID: e.ID, URL: m.link.URLWithToken(slug, token), ExpiresAt: timestamp.Format(e.ExpiresAt), TTLSeconds: int(handoff.TTL / time.Second),
	})
	return idempotency.Response{Status: http.StatusCreated, Body: body}, b, err
}

// suspendedProblem returns the 403 problem of a suspended tenant.
func suspendedProblem(cause error) error {
	return problem.New(problem.TenantSuspended, "This hotel takes no bookings at present.", cause)
}

// newEntry builds the ledger's row of an unsigned handoff. Currency, locale and campaign of the
// request take precedence over the session's values; a campaign without values means no campaign.
func (m *Mint) newEntry(guest *guest.Guest, in *request) ledger.Entry {
	now := m.now()
	e := ledger.Entry{
		Handoff: handoff.Handoff{
			ID: id.New(id.Handoff, now), GuestSessionID: guest.ID, TenantID: in.TenantID, PropertyID: in.PropertyID,
			Dates: in.Dates, Adults: in.Occupancy.Adults, Children: in.Occupancy.Children, Rooms: in.Occupancy.Rooms,
			Currency: string(guest.Currency), Locale: string(guest.Locale), MintedAt: now,
		},
		Details:     ledger.Details{ChildrenAges: in.Occupancy.ChildrenAges},
		Fingerprint: guest.Fingerprint, IPHash: guest.Request.IPHash(),
	}
	if in.Currency != nil {
		e.Currency = *in.Currency
	}
	if in.Locale != nil {
		e.Locale = *in.Locale
	}
	switch c, known := in.SourceCampaign, guest.Campaign; {
	case c != nil && (c.Source != "" || c.Medium != "" || c.Campaign != ""):
		e.Campaign = &ledger.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign, CapturedAt: now}
		if c.CapturedAt != nil {
			e.Campaign.CapturedAt = *c.CapturedAt
		}
	case c == nil && known != nil:
		e.Campaign = &ledger.Campaign{Source: known.Source, Medium: known.Medium, Campaign: known.Campaign, CapturedAt: known.CapturedAt}
	}
	return e
}

func newHandoffInitiated(e *ledger.Entry, slug, referer string) event.HandoffInitiated {
	initiated := event.HandoffInitiated{
		HandoffID: e.ID, GuestSessionID: e.GuestSessionID, TenantID: e.TenantID, TenantSlug: slug, PropertyID: e.PropertyID,
		Dates:     event.Dates{CheckIn: e.Dates.CheckIn.String(), CheckOut: e.Dates.CheckOut.String()},
		Occupancy: event.Occupancy{Adults: e.Adults, Children: e.Children, Rooms: e.Rooms, ChildrenAges: e.ChildrenAges},
		Currency:  e.Currency, Locale: e.Locale, MintedAt: e.MintedAt, ExpiresAt: e.ExpiresAt, HMACKeyID: e.KeyID,
		FingerprintHash: e.Fingerprint, IPHash: e.IPHash, OriginReferer: event.SanitizeReferer(referer),
	}
	if c := e.Campaign; c != nil {
		initiated.SourceCampaign = &event.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign}
	}
	return initiated
}
