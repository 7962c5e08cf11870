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
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Handlers holds the dependencies of the session routes. Each exported method is a handler; its
// answer is personal (private, no-store) and bounded by web.Budget (2.5 s). Safe for concurrent
// use.
type Handlers struct {
	guests *guest.Controller
	// for routes that fail without Redis: 800 ms each way instead of 100 ms
	longTimeoutGuests *guest.Controller
	sessions          *session.Store
	wishlist          *wishlist.Store
	eraser            *erasure.Eraser
	outbox            *outbox.Recorder
	rdb               redis.UniversalClient
	db                *pgxpool.Pool
	keys              redisclient.Keys
	now               func() time.Time
}

// guestSession is the JSON form of a session (docs/spec/data-model.md#guest-session) for its guest.
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

// loadedGuest is an admitted guest with the session's lists and raw hash in Redis.
type loadedGuest struct {
	*guest.Guest
	lists *session.Lists // nil without a genuine cookie
	// nil without a genuine cookie; the hash of the cookie's session, which may differ from the
	// guest's
	redisHash *redis.MapStringStringCmd
}

// begin admits a guest. The round trip of guest.Begin also reads the lists and the raw hash of the
// cookie's session. Errors come from guest.Begin.
func (h *Handlers) begin(guests *guest.Controller, w http.ResponseWriter, r *http.Request) (context.Context, *loadedGuest, error) {
	g := &loadedGuest{}
	ctx, admitted, err := guests.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		if request.ID != "" {
			g.lists = h.sessions.EnqueueLists(ctx, pipe, request.ID)
			g.redisHash = pipe.HGetAll(ctx, h.keys.Session(request.ID))
		}
	})
	g.Guest = admitted
	return ctx, g, err
}

// Show answers GET /session with status 200. A request without a genuine cookie begins a new
// session.
//
// Show costs a Redis round trip and a Postgres round trip, and a second Redis round trip when the
// session is new or changed, was last saved over a minute ago, solved a challenge now, or the copy
// of the wishlist in Redis needs repair. Redis may take 100 ms each time, Postgres 300 ms. The
// events of a new session or of a changed language or currency add a Postgres write of at most 300
// ms, and 500 ms of Redis if Postgres fails.
//
// Without Redis the answer has the session's id, the recorded consent and the wishlist, and names
// "session" in "degraded". Without Postgres the answer has the copy of the wishlist and names
// "wishlist". Without both stores the wishlist is empty. A session cleared meanwhile is a retriable
// 503, after up to 1.5 s for the rest of the erasure. Any other error of Postgres, and an
// undecodable copy, is 500.
func (h *Handlers) Show(w http.ResponseWriter, r *http.Request) error {
	ctx, g, err := h.begin(h.guests, w, r)
	if err != nil {
		return err
	}
	state, err := h.loadState(ctx, g, readTimeout)
	if err != nil {
		return err
	}
	h.guests.Finish(ctx, w, g.Guest, nil, state.repair)
	return web.WriteJSON(w, http.StatusOK, newGuestSession(g, state))
}

// sessionState is the part of an answer that comes from Postgres, and the repair of the copy in
// Redis.
type sessionState struct {
	wishlist wishlist.List
	degraded []view.Degraded
	repair   func(redis.Pipeliner) // for guest.Finish; queues nothing when the copy is right
}

const readTimeout = 300 * time.Millisecond // for the records in Postgres; after that the copies are shown

// loadState reads consent and wishlist from Postgres, in a single round trip of at most timeout,
// and applies the recorded consent to the session. While Postgres is unavailable or takes longer,
// it returns the copy of the wishlist in Redis and names "wishlist" as degraded. For a session that
// was cleared it finishes the erasure and returns a retriable problem.
func (h *Handlers) loadState(ctx context.Context, g *loadedGuest, timeout time.Duration) (*sessionState, error) {
	list, consent, err := h.readRecords(ctx, g.ID, timeout)
	copied, found := g.lists.Wishlist(g.Session)
	state := &sessionState{wishlist: list, repair: func(redis.Pipeliner) {}}
	if g.Session.Degraded {
		state.degraded = append(state.degraded, unavailable("session"))
	}
	switch {
	case err == nil && consent != nil && consent.Cleared: // an earlier clear ended before it deleted the session in Redis
		return nil, h.guests.HandleCleared(ctx, g.Guest, session.ErrCleared)
	case err == nil:
		g.ReconcileConsent(consent)
		state.repair = func(pipe redis.Pipeliner) { h.wishlist.EnqueueRepair(ctx, pipe, g.ID, list, copied, found) }
	case postgres.IsUnavailable(err):
		state.degraded = append(state.degraded, unavailable("wishlist"))
		if state.wishlist, err = wishlist.DecodeCopy(copied); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return state, nil
}

// readRecords reads consent and wishlist of a session in a Postgres round trip of at most timeout.
func (h *Handlers) readRecords(ctx context.Context, id string, timeout time.Duration) (list wishlist.List, consent *session.ConsentRecord, err error) {
	defer web.FromContext(ctx).Phase("read")()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var batch pgx.Batch
	session.QueueReadConsent(&batch, id, &consent)
	wishlist.QueueRead(&batch, id, &list)
	err = h.db.SendBatch(ctx, &batch).Close()
	return list, consent, err
}

func unavailable(part string) view.Degraded {
	return view.Degraded{Part: part, Reason: string(upstream.Unavailable)}
}

// newGuestSession builds the JSON form of a session.
func newGuestSession(g *loadedGuest, state *sessionState) *guestSession {
	s := g.Session
	body := &guestSession{
		ID: s.ID, CreatedAt: timestamp.Format(s.CreatedAt), LastSeenAt: timestamp.Format(s.LastSeenAt),
		LocalePreference: string(s.Locale), CurrencyPreference: string(s.Currency),
		RecentlyViewed: g.lists.RecentlyViewed(s), SearchHistory: g.lists.History(s),
		Flags: consent{s.Consent.Telemetry, s.Consent.Marketing}, Degraded: state.degraded,
	}
	for _, item := range state.wishlist.NewestFirst() {
		body.WishlistRefs = append(body.WishlistRefs, wishlistRef{item.ID, item.PropertyID, item.TenantID, item.AddedAt})
	}
	if c := s.Campaign; c != nil {
		body.CampaignAttribution = &campaign{c.Source, c.Medium, c.Campaign, timestamp.Format(c.CapturedAt)}
	}
	return body
}

const retryAfter = time.Second // of a problem that an unavailable store caused

// notSavedProblem returns the 503 problem of a request that needs Redis when Redis failed with err,
// or the retriable problem of a cleared session.
func notSavedProblem(err error) error {
	if errors.Is(err, session.ErrCleared) {
		return erasure.ClearedProblem(err)
	}
	return problem.New(problem.UpstreamUnavailable, "This cannot be recorded at present. Please try again in a moment.", err).WithRetryAfter(retryAfter)
}
