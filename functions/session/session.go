package session

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/erasure"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Handlers is where guests ask about their session. Its methods are the handlers. Safe for concurrent use.
type Handlers struct {
	guests            *guest.Controller
	longTimeoutGuests *guest.Controller // where a guest is refused whose session Redis does not have, or keep
	sessions          *session.Store
	wishlist          *wishlist.Store
	eraser            *erasure.Eraser
	outbox            *outbox.Recorder
	rdb               redis.UniversalClient
	db                *pgxpool.Pool
	keys              redisclient.Keys
	now               func() time.Time
}

// NewHandlers makes a Desk.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{
		guests: p.Guests, longTimeoutGuests: p.Guests.WithLongTimeout(), sessions: p.Sessions, wishlist: wishlist.New(p.Redis, p.DB, p.Keys, p.Now),
		eraser: p.Eraser, outbox: p.Outbox, rdb: p.Redis, db: p.DB, keys: p.Keys, now: p.Now,
	}
}

// guestSession is the session (docs/spec/data-model.md#guest-session) as its guest sees it.
type guestSession struct {
	ID                  string           `json:"id"`
	CreatedAt           string           `json:"createdAt"`
	LastSeenAt          string           `json:"lastSeenAt"`
	LocalePreference    string           `json:"localePreference"`
	CurrencyPreference  string           `json:"currencyPreference"`
	RecentlyViewed      []jsontext.Value `json:"recentlyViewed"`
	WishlistRefs        []wishlistRef    `json:"wishlistRefs"`
	SearchHistory       []jsontext.Value `json:"searchHistory"`
	CampaignAttribution *campaign        `json:"campaignAttribution,omitzero"`
	Flags               consent          `json:"flags"`
	Degraded            []view.Degraded  `json:"degraded"`
}

type wishlistRef struct {
	WishlistID string `json:"wishlistId"`
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"`
	AddedAt    string `json:"addedAt"`
}

type campaign struct {
	Source     string `json:"source,omitzero"`
	Medium     string `json:"medium,omitzero"`
	Campaign   string `json:"campaign,omitzero"`
	CapturedAt string `json:"capturedAt"`
}

type consent struct {
	Telemetry bool `json:"consentTelemetry"`
	Marketing bool `json:"consentMarketing"`
}

// loadedGuest is a guest at the desk, with what Redis has beside the session's hash.
type loadedGuest struct {
	*guest.Guest
	lists     *session.Lists
	redisHash *redis.MapStringStringCmd // the hash as it is; of another session when lists are
}

// begin lets a guest in by one of the doors.
func (d *Handlers) begin(door *guest.Controller, w http.ResponseWriter, r *http.Request) (context.Context, *loadedGuest, error) {
	v := &loadedGuest{}
	ctx, guest, err := door.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		if request.ID != "" {
			v.lists = d.sessions.EnqueueLists(ctx, pipe, request.ID)
			v.redisHash = pipe.HGetAll(ctx, d.keys.Session(request.ID))
		}
	})
	v.Guest = guest
	return ctx, v, err
}

// Show answers GET /session.
func (d *Handlers) Show(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.begin(d.guests, w, r)
	if err != nil {
		return err
	}
	now, err := d.loadState(ctx, v, readTimeout)
	if err != nil {
		return err
	}
	d.guests.Finish(ctx, w, v.Guest, nil, now.repair)
	return web.WriteJSON(w, http.StatusOK, newGuestSession(v, now))
}

// sessionState is what is shown of a session beside its hash, and what Redis is told of it when the visit ends.
type sessionState struct {
	wishlist wishlist.List
	degraded []view.Degraded
	repair   func(redis.Pipeliner)
}

const readTimeout = 300 * time.Millisecond // for the records; then the copies are shown

// loadState brings the session to what it is now: the records of Postgres, which correct what Redis has, or its copies while
// Postgres is away or takes longer than within.
func (d *Handlers) loadState(ctx context.Context, v *loadedGuest, within time.Duration) (*sessionState, error) {
	list, choice, err := d.readRecords(ctx, v.ID, within)
	copied, there := v.lists.Wishlist(v.Session)
	now := &sessionState{wishlist: list, repair: func(redis.Pipeliner) {}}
	if v.Session.Degraded {
		now.degraded = append(now.degraded, unavailable("session"))
	}
	switch {
	case err == nil && choice != nil && choice.Cleared: // by a clear that died before it came to Redis
		return nil, d.guests.HandleCleared(ctx, v.Guest, session.ErrCleared)
	case err == nil:
		v.ReconcileConsent(choice)
		now.repair = func(pipe redis.Pipeliner) { d.wishlist.EnqueueRepair(ctx, pipe, v.ID, list, copied, there) }
	case postgres.IsUnavailable(err):
		now.degraded = append(now.degraded, unavailable("wishlist"))
		if now.wishlist, err = wishlist.DecodeCopy(copied); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return now, nil
}

// readRecords reads what Postgres has of a session that its guest sees.
func (d *Handlers) readRecords(ctx context.Context, id string, within time.Duration) (list wishlist.List, choice *session.ConsentRecord, err error) {
	defer web.FromContext(ctx).Phase("read")()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var batch pgx.Batch
	session.QueueReadConsent(&batch, id, &choice)
	wishlist.QueueRead(&batch, id, &list)
	err = d.db.SendBatch(ctx, &batch).Close()
	return list, choice, err
}

func unavailable(part string) view.Degraded {
	return view.Degraded{Part: part, Reason: string(upstream.Unavailable)}
}

func newGuestSession(v *loadedGuest, now *sessionState) *guestSession {
	s := v.Session
	g := &guestSession{
		ID: s.ID, CreatedAt: timestamp.Format(s.CreatedAt), LastSeenAt: timestamp.Format(s.LastSeenAt),
		LocalePreference: string(s.Locale), CurrencyPreference: string(s.Currency),
		RecentlyViewed: v.lists.RecentlyViewed(s), SearchHistory: v.lists.History(s),
		Flags: consent{s.Consent.Telemetry, s.Consent.Marketing}, Degraded: now.degraded,
	}
	for _, item := range now.wishlist.NewestFirst() {
		g.WishlistRefs = append(g.WishlistRefs, wishlistRef{item.ID, item.PropertyID, item.TenantID, item.AddedAt})
	}
	if c := s.Campaign; c != nil {
		g.CampaignAttribution = &campaign{c.Source, c.Medium, c.Campaign, timestamp.Format(c.CapturedAt)}
	}
	return g
}

// retryAfter is when what did not work for want of a store may work again.
const retryAfter = time.Second

// notSavedProblem is what a guest is told whose wish Redis did not take.
func notSavedProblem(err error) error {
	if errors.Is(err, session.ErrCleared) {
		return erasure.ClearedProblem(err)
	}
	return problem.New(problem.UpstreamUnavailable, "This cannot be recorded at present. Please try again in a moment.", err).WithRetryAfter(retryAfter)
}
