// Package admission owns how a guest's request enters and leaves: one Redis round trip in, which reads
// session, suspended tenants and the cache together, and one out, which writes what the request changed.
// It never composes an answer.
package admission

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/burial"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Door admits the guests of one function. Safe for concurrent use.
type Door struct {
	rdb      redis.UniversalClient
	sessions *session.Room
	tenants  *tenants.Tenants
	cache    *cache.Cache
	outbox   *outbox.Recorder
	burial   *burial.Room
	guard    Guard
	class    ratelimit.Class
	instance string
	patience time.Duration // with Redis, for the one round trip in, and for the one out
}

// New makes a Door for routes of the class Read. instance is the name under which this process speaks in events.
func New(
	rdb redis.UniversalClient, sessions *session.Room, tenants *tenants.Tenants, cache *cache.Cache, outbox *outbox.Recorder,
	burial *burial.Room, guard Guard, instance string,
) *Door {
	return &Door{rdb, sessions, tenants, cache, outbox, burial, guard, ratelimit.Read, instance, patience}
}

// For is the same Door for routes of another class.
func (d *Door) For(class ratelimit.Class) *Door {
	other := *d
	other.class = class
	return &other
}

// Patient is the same Door for routes that refuse a guest without Redis: there an answer that is late is better than none,
// so Redis may take 800 ms each way. One that is known to be away costs them nothing.
func (d *Door) Patient() *Door {
	other := *d
	other.patience = needed
	return &other
}

// pipeline is one that Redis may take the door's time for; patience itself is less than the client's.
func (d *Door) pipeline() redis.Pipeliner {
	if d.patience > patience {
		return keyspace.Patient(d.rdb).Pipeline()
	}
	return d.rdb.Pipeline()
}

// Guest is an admitted request: whose it is, and what was read for it.
type Guest struct {
	*session.Session
	Visit     *session.Visit
	Suspended *tenants.Suspended

	seen   map[string]*cache.Peeked
	ids    id.Series // of its events, which are sent by id
	events []event.Event
	door   *Door
	gate   *gate
}

const (
	patience = 100 * time.Millisecond // a request goes on without Redis then
	needed   = 800 * time.Millisecond // of Patient: twice, and what is recorded after it, are less than a request's budget
)

// Keys names the cache entries a request will want once its locale and currency are known.
type Keys func(locale.Tag, money.Currency) []string

// Also puts further reads for a session on the pipeline of Admit. The session may turn out to be another: of a cookie
// that came from another browser. It is not called without a genuine cookie.
type Also func(ctx context.Context, pipe redis.Pipeliner, id string)

// Again says, once the pipeline of Admit has run, that a request repeats one of its session that was answered or is under
// way.
type Again func() bool

// Admit reads everything the request needs from Redis in one round trip of at most 100 ms; keys may be nil. Without Redis
// the guest is admitted all the same, with a degraded session and nothing cached. For a session that Redis lost it asks
// Postgres what the guest decided about it. The context it returns tells upstreams on whose behalf they are called. The
// answer's headers say how the client stands with the limits. The only errors are problems of the request, or that its client
// asks for too much, or is taken for a robot.
func (d *Door) Admit(w http.ResponseWriter, r *http.Request, keys Keys, also ...Also) (context.Context, *Guest, error) {
	return d.admit(w, r, keys, nil, also...)
}

// AdmitAgain is Admit for a request that may be a repetition: one that is costs nothing of its class. It is a read
// instead, which takes it a second round trip. Before such a request does what it repeats, it asks Guest.First.
func (d *Door) AdmitAgain(w http.ResponseWriter, r *http.Request, keys Keys, also Also, again Again) (context.Context, *Guest, error) {
	return d.admit(w, r, keys, again, also)
}

func (d *Door) admit(w http.ResponseWriter, r *http.Request, keys Keys, again Again, also ...Also) (context.Context, *Guest, error) {
	ctx := r.Context()
	call := web.From(ctx)
	defer call.Phase("begin")()
	if err := web.NoQuery(r); err != nil { // all that a guest's routes are told is in headers and body
		return ctx, nil, err
	}
	visit, err := d.sessions.Read(r)
	if err != nil {
		return ctx, nil, err
	}
	g := &Guest{Visit: visit, seen: map[string]*cache.Peeked{}, door: d}
	pipe := d.pipeline()
	g.gate = d.ask(r, pipe, &visit.Client, visit.ID, d.counted())
	read := d.sessions.Peek(ctx, pipe, visit)
	suspended := d.tenants.Peek(ctx, pipe)
	if keys != nil {
		for _, key := range keys(d.sessions.Guess(visit)) {
			g.seen[key] = d.cache.Peek(ctx, pipe, key)
		}
	}
	if visit.ID != "" {
		for _, read := range also {
			read(ctx, pipe, visit.ID)
		}
	}
	within, cancel := d.counting(ctx)
	lua.Exec(within, pipe) // each command carries its own error, and each room says what it does without an answer
	cancel()
	settled := d.sessions.Settle(visit, read)
	standing, err := g.gate.open(ctx, settled, again)
	if standing != nil {
		standing.Write(w.Header())
	}
	if err != nil {
		return ctx, nil, err
	}
	g.Session = d.sessions.Recall(ctx, visit, settled)
	g.Suspended = d.tenants.Settle(ctx, suspended)
	if g.Degraded {
		call.Note("session", "degraded")
	}
	if g.New {
		g.Record(ctx, started(g), 1)
	}
	return upstream.WithCaller(ctx, upstream.Caller{
		RequestID: call.ID, Traceparent: call.Traceparent, Bucket: d.sessions.Bucket(g.ID),
	}), g, nil
}

// Seen is what Admit read under that key; nil when the guess of locale or currency was wrong.
func (g *Guest) Seen(key string) *cache.Peeked { return g.seen[key] }

// First is for a request of AdmitAgain that does the work by itself: its error refuses one that was let in as a repetition,
// but repeats what came to nothing, and for which the limits of its class have no room. Else whoever sends each key twice
// would have the work done for reads: the first is refused, and the second takes its place. What it took as a read is
// given back, in one round trip of at most 100 ms; for any other request First does nothing.
func (g *Guest) First(ctx context.Context, w http.ResponseWriter) error {
	if !g.gate.again {
		return nil
	}
	g.gate.again = false
	g.gate.spent = g.door.guard.Limits.Instead(ctx, g.gate.spent, g.door.class, g.gate.limited())
	standing, err := g.gate.settle(ctx)
	if standing != nil {
		standing.Write(w.Header())
	}
	return err
}

// Record adds an event of this session, written when the guest leaves; without consent it does nothing.
// rate is the share of sessions that report the subject: the caller has asked event.Sampled.
func (g *Guest) Record(ctx context.Context, p event.Payload, rate float64) {
	g.record(ctx, p, event.Meta{Now: g.LastSeenAt, SamplingRate: rate})
}

// RecordOnce is Record for an event that the client reports and may report twice: the id is the same for the same (see
// id.Derive), and at is when it happened.
func (g *Guest) RecordOnce(ctx context.Context, id string, at time.Time, p event.Payload) {
	g.record(ctx, p, event.Meta{Now: at, ID: id})
}

// NewID mints an id for what this request tells, after those of all that it told before.
func (g *Guest) NewID(p id.Prefix) string { return g.ids.New(p, time.Now()) }

func (g *Guest) record(ctx context.Context, p event.Payload, m event.Meta) {
	if !g.Emits() {
		return
	}
	call := web.From(ctx)
	m.SessionID, m.RequestID, m.Traceparent, m.Instance = g.ID, call.ID, call.Traceparent, g.door.instance
	if m.ID == "" {
		m.ID = g.ids.New(id.Event, m.Now)
	}
	g.events = append(g.events, event.New(m, p))
}

// Left is what became of what a request left behind. Most routes need not ask.
type Left struct {
	Unsaved error // why Redis does not have what changed; session.ErrCleared: the session is over; nil: it has
	Untold  error // why events were lost; nil: none was
}

// Leave writes what the request changed, in one Redis round trip of at most 100 ms, and its events, before the answer is
// written: after the response there is nothing. A request that changed nothing of the session, a minute within the last,
// leaves the session alone, and costs no round trip. Losing either costs no guest an answer, so both are noted, and told
// to those who ask. more adds to the round trip, or makes one. It names the session to the client, unless it was seen to
// be cleared meanwhile.
func (d *Door) Leave(ctx context.Context, w http.ResponseWriter, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner)) Left {
	defer web.From(ctx).Phase("finish")()
	unsaved := d.save(ctx, g, history, more)
	return d.settle(ctx, w, g, unsaved)
}

// LeaveSaved is Leave for a request that is refused unless Redis takes what it changed: when it does not, which is the
// error, nothing is told of the request and the client is not named a session that it will not hear of.
func (d *Door) LeaveSaved(ctx context.Context, w http.ResponseWriter, g *Guest, more func(redis.Pipeliner)) error {
	defer web.From(ctx).Phase("finish")()
	if err := d.save(ctx, g, nil, more); err != nil {
		return err
	}
	return d.settle(ctx, w, g, nil).Unsaved
}

// settle ends what save began.
func (d *Door) settle(ctx context.Context, w http.ResponseWriter, g *Guest, unsaved error) Left {
	call := web.From(ctx)
	left := Left{Unsaved: unsaved}
	if left.Unsaved != nil && !g.Degraded {
		call.Note("sessionNotSaved", left.Unsaved.Error())
	}
	if len(g.events) > 0 {
		taken, err := d.outbox.Offer(ctx, g.Known(), g.events...)
		if left.Untold = err; err != nil {
			call.Note("telemetryLost", err.Error())
		} else if taken == 0 && d.isCleared(ctx, g) {
			left.Unsaved = session.ErrCleared
		}
	}
	if !errors.Is(left.Unsaved, session.ErrCleared) {
		session.SetCookie(w, g.ID)
	}
	web.Private(w)
	return left
}

// errLost says that Redis lost the session between Admit and Leave: the next request finds it lost and builds it anew.
var errLost = errors.New("admission: the session was lost meanwhile")

// save writes to Redis, and learns there whether the guest refused telemetry or cleared the session since Admit, and
// which preferences this request was the one to change.
func (d *Door) save(ctx context.Context, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner)) error {
	if g.Degraded {
		return keyspace.ErrAway
	}
	visits := g.Unsaved() || history != nil || len(g.events) > 0
	pipe := d.pipeline()
	g.gate.leave(ctx, pipe, g.Session)
	var visited *redis.Cmd
	if visits {
		visited = d.sessions.Save(ctx, pipe, g.Session, history)
	}
	if more != nil {
		more(pipe)
	}
	if pipe.Len() == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.patience) // a guest who hung up was here all the same
	defer cancel()
	failed := lua.Exec(within, pipe)
	if !visits {
		return failed
	}
	saved, err := d.sessions.Saved(g.Session, visited)
	switch {
	case err != nil:
		return err
	case saved.Gone:
		g.events = nil
		d.sessions.Unsee(within, d.rdb, g.ID) // if it fails, the sweep finds the id in 30 days and says nothing of it
		return session.ErrCleared
	case saved.Lost:
		return errLost // the events stay: Postgres has the last word on them
	case saved.Silent:
		g.events = nil
	}
	if c := saved.Locale; c != nil {
		g.Record(ctx, event.LocaleChanged{
			GuestSessionID: g.ID, PreviousLocale: c.From, NewLocale: c.To, Trigger: c.Trigger, OccurredAt: g.LastSeenAt,
		}, 1)
	}
	if c := saved.Currency; c != nil {
		g.Record(ctx, event.CurrencyChanged{
			GuestSessionID: g.ID, PreviousCurrency: c.From, NewCurrency: c.To, Trigger: c.Trigger, OccurredAt: g.LastSeenAt,
		}, 1)
	}
	return failed
}

func started(g *Guest) event.SessionStarted {
	e := event.SessionStarted{
		GuestSessionID: g.ID, CreatedAt: g.CreatedAt,
		LocalePreference: string(g.Locale), CurrencyPreference: string(g.Currency),
		FingerprintHash: g.Fingerprint, IPHash: g.Visit.IPHash(), UserAgentClass: g.Visit.AgentClass,
	}
	if c := g.Campaign; c != nil {
		e.CampaignAttribution = &event.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign}
	}
	return e
}
