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

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/burial"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Desk is where guests ask about their session. Its methods are the handlers. Safe for concurrent use.
type Desk struct {
	door     *admission.Door
	needed   *admission.Door // where a guest is refused whose session Redis does not have, or keep
	sessions *session.Room
	wishlist *wishlist.Room
	burial   *burial.Room
	outbox   *outbox.Recorder
	rdb      redis.UniversalClient
	db       *pgxpool.Pool
	keys     keyspace.Keys
	now      func() time.Time
}

// NewDesk makes a Desk.
func NewDesk(p *setup.Parts) *Desk {
	return &Desk{
		door: p.Door, needed: p.Door.Patient(), sessions: p.Sessions, wishlist: wishlist.New(p.Redis, p.DB, p.Keys, p.Now),
		burial: p.Burial, outbox: p.Outbox, rdb: p.Redis, db: p.DB, keys: p.Keys, now: p.Now,
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

// visit is a guest at the desk, with what Redis has beside the session's hash.
type visit struct {
	*admission.Guest
	lists *session.Lists
	hash  *redis.MapStringStringCmd // the hash as it is; of another session when lists are
}

// admit lets a guest in by one of the doors.
func (d *Desk) admit(door *admission.Door, w http.ResponseWriter, r *http.Request) (context.Context, *visit, error) {
	v := &visit{}
	ctx, guest, err := door.Admit(w, r, nil, func(ctx context.Context, pipe redis.Pipeliner, id string) {
		v.lists = d.sessions.PeekLists(ctx, pipe, id)
		v.hash = pipe.HGetAll(ctx, d.keys.Session(id))
	})
	v.Guest = guest
	return ctx, v, err
}

// Show answers GET /session.
func (d *Desk) Show(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.admit(d.door, w, r)
	if err != nil {
		return err
	}
	now, err := d.look(ctx, v, readWithin)
	if err != nil {
		return err
	}
	d.door.Leave(ctx, w, v.Guest, nil, now.repair)
	return web.WriteJSON(w, http.StatusOK, show(v, now))
}

// standing is what is shown of a session beside its hash, and what Redis is told of it when the visit ends.
type standing struct {
	list    wishlist.List
	missing []view.Degraded
	repair  func(redis.Pipeliner)
}

const readWithin = 300 * time.Millisecond // for the records; then the copies are shown

// look brings the session to what it is now: the records of Postgres, which correct what Redis has, or its copies while
// Postgres is away or takes longer than within.
func (d *Desk) look(ctx context.Context, v *visit, within time.Duration) (*standing, error) {
	list, choice, err := d.records(ctx, v.ID, within)
	copied, there := v.lists.Wishlist(v.Session)
	now := &standing{list: list, repair: func(redis.Pipeliner) {}}
	if v.Session.Degraded {
		now.missing = append(now.missing, unavailable("session"))
	}
	switch {
	case err == nil && choice != nil && choice.Cleared: // by a clear that died before it came to Redis
		return nil, d.door.Refused(ctx, v.Guest, session.ErrCleared)
	case err == nil:
		v.Correct(choice)
		now.repair = func(pipe redis.Pipeliner) { d.wishlist.Repair(ctx, pipe, v.ID, list, copied, there) }
	case postgres.IsAway(err):
		now.missing = append(now.missing, unavailable("wishlist"))
		if now.list, err = wishlist.Decode(copied); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return now, nil
}

// records reads what Postgres has of a session that its guest sees.
func (d *Desk) records(ctx context.Context, id string, within time.Duration) (list wishlist.List, choice *session.Choice, err error) {
	defer web.From(ctx).Phase("read")()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var batch pgx.Batch
	session.ReadChoice(&batch, id, &choice)
	wishlist.Read(&batch, id, &list)
	err = d.db.SendBatch(ctx, &batch).Close()
	return list, choice, err
}

func unavailable(part string) view.Degraded {
	return view.Degraded{Part: part, Reason: string(upstream.Unavailable)}
}

func show(v *visit, now *standing) *guestSession {
	s := v.Session
	g := &guestSession{
		ID: s.ID, CreatedAt: instant.Text(s.CreatedAt), LastSeenAt: instant.Text(s.LastSeenAt),
		LocalePreference: string(s.Locale), CurrencyPreference: string(s.Currency),
		RecentlyViewed: v.lists.Recent(s), SearchHistory: v.lists.History(s),
		Flags: consent{s.Consent.Telemetry, s.Consent.Marketing}, Degraded: now.missing,
	}
	for _, item := range now.list.Newest() {
		g.WishlistRefs = append(g.WishlistRefs, wishlistRef{item.ID, item.PropertyID, item.TenantID, item.AddedAt})
	}
	if c := s.Campaign; c != nil {
		g.CampaignAttribution = &campaign{c.Source, c.Medium, c.Campaign, instant.Text(c.CapturedAt)}
	}
	return g
}

// comeBack is when what did not work for want of a store may work again.
const comeBack = time.Second

// unsaved is what a guest is told whose wish Redis did not take.
func unsaved(err error) error {
	if errors.Is(err, session.ErrCleared) {
		return admission.Cleared(err)
	}
	return problem.New(problem.UpstreamUnavailable, "This cannot be recorded at present. Please try again in a moment.", err).After(comeBack)
}
