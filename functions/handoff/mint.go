package handoff

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Mint answers POST /handoff. Safe for concurrent use.
type Mint struct {
	door    *admission.Door
	compose *compose.Parts
	once    *idempotency.Room
	keys    handoff.Keys
	link    handoff.Link
	now     func() time.Time
}

const route = "POST /handoff"

// minted is the answer.
type minted struct {
	HandoffID  string `json:"handoffId"`
	URL        string `json:"url"` // with the token in it: never logged
	ExpiresAt  string `json:"expiresAt"`
	TTLSeconds int    `json:"ttlSeconds"`
}

// Serve mints a handoff, once for a key, and answers where the guest goes with it.
func (m *Mint) Serve(w http.ResponseWriter, r *http.Request) error {
	in, overnight, asked, err := m.read(r)
	if err != nil {
		return err
	}
	var seen *idempotency.Peeked
	ctx, guest, err := m.door.AdmitAgain(w, r, func(locale.Tag, money.Currency) []string {
		return []string{m.compose.OwnerKey(in.PropertyID), m.compose.BrandKey(in.TenantID)}
	}, func(ctx context.Context, pipe redis.Pipeliner, session string) {
		asked.SessionID = session
		seen = m.once.Peek(ctx, pipe, asked)
	}, func() bool { return seen.Repeated() })
	if err != nil {
		m.once.Drop(ctx, seen)
		return err
	}
	asked.SessionID = guest.ID
	done := web.From(ctx).Phase("mint")
	answer, unkept, err := m.once.Do(ctx, asked, seen, func(ctx context.Context) (idempotency.Answer, *pgx.Batch, error) {
		if len(overnight) > 0 {
			return idempotency.Answer{}, nil, problem.Invalid(overnight...)
		}
		if err := guest.First(ctx, w); err != nil {
			return idempotency.Answer{}, nil, err
		}
		return m.prepare(ctx, r, guest, in)
	})
	done()
	if ledger.Suspended(err) {
		return suspended(err)
	}
	if err != nil {
		return m.door.Refused(ctx, guest, err)
	}
	m.door.Leave(ctx, w, guest, nil, func(pipe redis.Pipeliner) { unkept.Keep(ctx, pipe) })
	if answer.Replayed {
		web.From(ctx).Note("replayed", true)
		w.Header().Set(idempotency.Replayed, "true")
	}
	send(w, answer)
	return nil
}

// read reads the request and the key it comes under. overnight are faults that it did not have before the day changed:
// they are for who mints, because a repetition after midnight gets its answer all the same.
func (m *Mint) read(r *http.Request) (in *request, overnight []problem.Field, asked idempotency.Request, err error) {
	in = &request{Occupancy: stay.Unsaid()}
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

// send writes the answer as it is on record.
func send(w http.ResponseWriter, answer idempotency.Answer) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer") // the URL goes to the tenant and nowhere else
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer.Body)))
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // the client may be gone; it may ask again under its key
}

// prepare decides whether the guest may go there, signs the token and queues what makes it true: the ledger's entry and
// the event, or that the guest refuses such.
func (m *Mint) prepare(ctx context.Context, r *http.Request, guest *admission.Guest, in *request) (a idempotency.Answer, b *pgx.Batch, err error) {
	switch {
	case !guest.Suspended.Known():
		return a, nil, problem.New(problem.UpstreamUnavailable, "Bookings cannot be passed on at present. Please try again in a moment.", nil).After(time.Second)
	case guest.Suspended.Has(in.TenantID):
		return a, nil, suspended(nil)
	}
	slug, err := m.slug(ctx, guest, in)
	if err != nil {
		return a, nil, err
	}
	e := m.entry(guest, in)
	token, err := m.keys.Sign(&e.Handoff)
	if err != nil {
		return a, nil, err
	}
	b = &pgx.Batch{}
	if err := ledger.Queue(b, e); err != nil {
		return a, nil, err
	}
	if err := guest.Tell(ctx, b, initiated(&e, slug, r.Referer())); err != nil {
		return a, nil, err
	}
	body, err := json.Marshal(minted{
		HandoffID: e.ID, URL: m.link.With(slug, token), ExpiresAt: instant.Text(e.ExpiresAt), TTLSeconds: int(handoff.TTL / time.Second),
	})
	return idempotency.Answer{Status: http.StatusCreated, Body: body}, b, err
}

func suspended(cause error) error {
	return problem.New(problem.TenantSuspended, "This hotel takes no bookings at present.", cause)
}

// entry is the handoff of this guest to what was asked for, not signed yet.
func (m *Mint) entry(guest *admission.Guest, in *request) ledger.Entry {
	now := m.now()
	e := ledger.Entry{
		Handoff: handoff.Handoff{
			ID: id.New(id.Handoff, now), GuestSessionID: guest.ID, TenantID: in.TenantID, PropertyID: in.PropertyID,
			Dates: in.Dates, Adults: in.Occupancy.Adults, Children: in.Occupancy.Children, Rooms: in.Occupancy.Rooms,
			Currency: string(guest.Currency), Locale: string(guest.Locale), MintedAt: now,
		},
		Details:     ledger.Details{ChildrenAges: in.Occupancy.ChildrenAges},
		Fingerprint: guest.Fingerprint, IPHash: guest.Visit.IPHash(),
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

func initiated(e *ledger.Entry, slug, referer string) event.HandoffInitiated {
	told := event.HandoffInitiated{
		HandoffID: e.ID, GuestSessionID: e.GuestSessionID, TenantID: e.TenantID, TenantSlug: slug, PropertyID: e.PropertyID,
		Dates:     event.Dates{CheckIn: e.Dates.CheckIn.String(), CheckOut: e.Dates.CheckOut.String()},
		Occupancy: event.Occupancy{Adults: e.Adults, Children: e.Children, Rooms: e.Rooms, ChildrenAges: e.ChildrenAges},
		Currency:  e.Currency, Locale: e.Locale, MintedAt: e.MintedAt, ExpiresAt: e.ExpiresAt, HMACKeyID: e.KeyID,
		FingerprintHash: e.Fingerprint, IPHash: e.IPHash, OriginReferer: event.Referer(referer),
	}
	if c := e.Campaign; c != nil {
		told.SourceCampaign = &event.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign}
	}
	return told
}
