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

// Mint answers POST /handoff. Safe for concurrent use.
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

// mintResponse is the answer.
type mintResponse struct {
	HandoffID  string `json:"handoffId"`
	URL        string `json:"url"` // with the token in it: never logged
	ExpiresAt  string `json:"expiresAt"`
	TTLSeconds int    `json:"ttlSeconds"`
}

// Serve mints a handoff, once for a key, and answers where the guest goes with it.
func (m *Mint) Serve(w http.ResponseWriter, r *http.Request) error {
	in, overnight, asked, err := m.parseRequest(r)
	if err != nil {
		return m.guests.CountRejected(w, r, err)
	}
	var seen *idempotency.ClaimAttempt
	var prefetched prefetchedParts
	ctx, guest, err := m.guests.BeginRetry(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		prefetched.owner = m.cache.Enqueue(ctx, pipe, m.parts.OwnerKey(in.PropertyID))
		prefetched.brand = m.cache.Enqueue(ctx, pipe, m.parts.BrandKey(in.TenantID))
		if request.ID != "" {
			asked.SessionID = request.ID
			seen = m.idempotency.Enqueue(ctx, pipe, asked)
		}
	}, func() bool { return seen.IsRetry() })
	if err != nil {
		m.idempotency.Cancel(ctx, seen)
		return err
	}
	asked.SessionID = guest.ID
	done := web.FromContext(ctx).Phase("mint")
	answer, unkept, err := m.idempotency.Do(ctx, asked, seen, func(ctx context.Context) (idempotency.Response, *pgx.Batch, error) {
		if len(overnight) > 0 {
			return idempotency.Response{}, nil, problem.Invalid(overnight...)
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
	m.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { unkept.Enqueue(ctx, pipe) })
	if answer.Replayed {
		web.FromContext(ctx).AddLogField("replayed", true)
		w.Header().Set(idempotency.ReplayedHeader, "true")
	}
	writeResponse(w, answer)
	return nil
}

// parseRequest reads the request and the key it comes under. overnight are faults that it did not have before the day changed:
// they are for who mints, because a repetition after midnight gets its answer all the same.
func (m *Mint) parseRequest(r *http.Request) (in *request, overnight []problem.FieldError, asked idempotency.Request, err error) {
	in = &request{Occupancy: stay.UnsetOccupancy()}
	if err = web.Decode(r, in); err != nil {
		return nil, nil, asked, err
	}
	asked.Route = route
	if asked.Key, err = idempotency.RequiredKey(r.Header); err != nil {
		return nil, nil, asked, err
	}
	if overnight, err = in.check(m.now()); err != nil {
		return nil, nil, asked, err
	}
	asked.Digest, err = idempotency.Digest(in)
	return in, overnight, asked, err
}

// writeResponse writes the answer as it is on record.
func writeResponse(w http.ResponseWriter, answer idempotency.Response) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer") // the URL goes to the tenant and nowhere else
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer.Body)))
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // the client may be gone; it may ask again under its key
}

// prepare decides whether the guest may go there, signs the token and queues what makes it true: the ledger's entry and
// the event, or that the guest refuses such.
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

func suspendedProblem(cause error) error {
	return problem.New(problem.TenantSuspended, "This hotel takes no bookings at present.", cause)
}

// newEntry is the handoff of this guest to what was asked for, not signed yet.
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
	told := event.HandoffInitiated{
		HandoffID: e.ID, GuestSessionID: e.GuestSessionID, TenantID: e.TenantID, TenantSlug: slug, PropertyID: e.PropertyID,
		Dates:     event.Dates{CheckIn: e.Dates.CheckIn.String(), CheckOut: e.Dates.CheckOut.String()},
		Occupancy: event.Occupancy{Adults: e.Adults, Children: e.Children, Rooms: e.Rooms, ChildrenAges: e.ChildrenAges},
		Currency:  e.Currency, Locale: e.Locale, MintedAt: e.MintedAt, ExpiresAt: e.ExpiresAt, HMACKeyID: e.KeyID,
		FingerprintHash: e.Fingerprint, IPHash: e.IPHash, OriginReferer: event.SanitizeReferer(referer),
	}
	if c := e.Campaign; c != nil {
		told.SourceCampaign = &event.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign}
	}
	return told
}
