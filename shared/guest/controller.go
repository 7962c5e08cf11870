// Package admission owns how a guest's request enters and leaves: one Redis round trip in, which reads
// session, suspended tenants and the cache together, and one out, which writes what the request changed.
// It never composes an answer.
package guest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/erasure"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Controller admits the guests of one function. Safe for concurrent use.
type Controller struct {
	rdb      redis.UniversalClient
	sessions *session.Store
	tenants  *tenants.SuspensionCache
	cache    *cache.Cache
	outbox   *outbox.Recorder
	eraser   *erasure.Eraser
	policies Policies
	class    ratelimit.Class
	instance string
	timeout  time.Duration // with Redis, for the one round trip in, and for the one out
}

// New makes a Door for routes of the class Read. instance is the name under which this process speaks in events.
func New(
	rdb redis.UniversalClient, sessions *session.Store, tenants *tenants.SuspensionCache, cache *cache.Cache, outbox *outbox.Recorder,
	burial *erasure.Eraser, guard Policies, instance string,
) *Controller {
	return &Controller{rdb, sessions, tenants, cache, outbox, burial, guard, ratelimit.Read, instance, redisTimeout}
}

// WithClass is the same Door for routes of another class.
func (d *Controller) WithClass(class ratelimit.Class) *Controller {
	other := *d
	other.class = class
	return &other
}

// WithLongTimeout is the same Door for routes that refuse a guest without Redis: there an answer that is late is better than none,
// so Redis may take 800 ms each way. One that is known to be away costs them nothing.
func (d *Controller) WithLongTimeout() *Controller {
	other := *d
	other.timeout = longRedisTimeout
	return &other
}

// pipeline is one that Redis may take the door's time for; patience itself is less than the client's.
func (d *Controller) pipeline() redis.Pipeliner {
	if d.timeout > redisTimeout {
		return redisclient.WithLongTimeout(d.rdb).Pipeline()
	}
	return d.rdb.Pipeline()
}

// Guest is an admitted request: whose it is, and what was read for it.
type Guest struct {
	*session.Session
	Request   *session.Request
	Suspended *tenants.SuspendedSet

	prefetched map[string]*cache.Pending
	ids        id.Monotonic // of its events, which are sent by id
	events     []event.Event
	controller *Controller
	check      *check
}

const (
	redisTimeout     = 100 * time.Millisecond // a request goes on without Redis then
	longRedisTimeout = 800 * time.Millisecond // of Patient: twice, and what is recorded after it, are less than a request's budget
)

// CacheKeys names the cache entries a request will want once its locale and currency are known.
type CacheKeys func(locale.Tag, money.Currency) []string

// ExtraReads puts further reads for a session on the pipeline of Admit. The session may turn out to be another: of a cookie
// that came from another browser. It is not called without a genuine cookie.
type ExtraReads func(ctx context.Context, pipe redis.Pipeliner, id string)

// IsRetry says, once the pipeline of Admit has run, that a request repeats one of its session that was answered or is under
// way.
type IsRetry func() bool

// Begin reads everything the request needs from Redis in one round trip of at most 100 ms; keys may be nil. Without Redis
// the guest is admitted all the same, with a degraded session and nothing cached. For a session that Redis lost it asks
// Postgres what the guest decided about it. The context it returns tells upstreams on whose behalf they are called. The
// answer's headers say how the client stands with the limits. The only errors are problems of the request, or that its client
// asks for too much, or is taken for a robot.
func (d *Controller) Begin(w http.ResponseWriter, r *http.Request, keys CacheKeys, also ...ExtraReads) (context.Context, *Guest, error) {
	return d.begin(w, r, keys, nil, also...)
}

// BeginRetry is Admit for a request that may be a repetition: one that is costs nothing of its class. It is a read
// instead, which takes it a second round trip. Before such a request does what it repeats, it asks Guest.First.
func (d *Controller) BeginRetry(w http.ResponseWriter, r *http.Request, keys CacheKeys, also ExtraReads, again IsRetry) (context.Context, *Guest, error) {
	return d.begin(w, r, keys, again, also)
}

func (d *Controller) begin(w http.ResponseWriter, r *http.Request, keys CacheKeys, again IsRetry, also ...ExtraReads) (context.Context, *Guest, error) {
	ctx := r.Context()
	call := web.FromContext(ctx)
	defer call.Phase("begin")()
	if err := web.RejectQuery(r); err != nil { // all that a guest's routes are told is in headers and body
		return ctx, nil, err
	}
	visit, err := d.sessions.ParseRequest(r)
	if err != nil {
		return ctx, nil, err
	}
	g := &Guest{Request: visit, prefetched: map[string]*cache.Pending{}, controller: d}
	pipe := d.pipeline()
	g.check = d.enqueueCheck(r, pipe, &visit.Client, visit.ID, d.countsCadence())
	read := d.sessions.Enqueue(ctx, pipe, visit)
	suspended := d.tenants.Enqueue(ctx, pipe)
	if keys != nil {
		for _, key := range keys(d.sessions.PredictPreferences(visit)) {
			g.prefetched[key] = d.cache.Enqueue(ctx, pipe, key)
		}
	}
	if visit.ID != "" {
		for _, read := range also {
			read(ctx, pipe, visit.ID)
		}
	}
	within, cancel := d.redisContext(ctx)
	lua.Exec(within, pipe) // each command carries its own error, and each room says what it does without an answer
	cancel()
	settled := d.sessions.Resolve(visit, read)
	standing, err := g.check.decide(ctx, settled, again)
	if standing != nil {
		standing.WriteHeaders(w.Header())
	}
	if err != nil {
		return ctx, nil, err
	}
	g.Session = d.sessions.RestoreConsent(ctx, visit, settled)
	g.Suspended = d.tenants.Resolve(ctx, suspended)
	if g.Degraded {
		call.AddLogField("session", "degraded")
	}
	if g.New {
		g.Record(ctx, sessionStarted(g), 1)
	}
	return upstream.WithCaller(ctx, upstream.Caller{
		RequestID: call.ID, Traceparent: call.Traceparent, Bucket: d.sessions.Bucket(g.ID),
	}), g, nil
}

// Prefetched is what Admit read under that key; nil when the guess of locale or currency was wrong.
func (g *Guest) Prefetched(key string) *cache.Pending { return g.prefetched[key] }

// ChargeRetry is for a request of AdmitAgain that does the work by itself: its error refuses one that was let in as a repetition,
// but repeats what came to nothing, and for which the limits of its class have no room. Else whoever sends each key twice
// would have the work done for reads: the first is refused, and the second takes its place. What it took as a read is
// given back, in one round trip of at most 100 ms; for any other request First does nothing.
func (g *Guest) ChargeRetry(ctx context.Context, w http.ResponseWriter) error {
	if !g.check.isRetry {
		return nil
	}
	g.check.isRetry = false
	g.check.limits = g.controller.policies.Limits.Reclassify(ctx, g.check.limits, g.controller.class, g.check.limitClient())
	standing, err := g.check.resolveLimits(ctx)
	if standing != nil {
		standing.WriteHeaders(w.Header())
	}
	return err
}

// Record adds an event of this session, written when the guest leaves; without consent it does nothing.
// rate is the share of sessions that report the subject: the caller has asked event.Sampled.
func (g *Guest) Record(ctx context.Context, p event.Payload, rate float64) {
	g.addEvent(ctx, p, event.Meta{Now: g.LastSeenAt, SamplingRate: rate})
}

// RecordOnce is Record for an event that the client reports and may report twice: the id is the same for the same (see
// id.Derive), and at is when it happened.
func (g *Guest) RecordOnce(ctx context.Context, id string, at time.Time, p event.Payload) {
	g.addEvent(ctx, p, event.Meta{Now: at, ID: id})
}

// NewID mints an id for what this request tells, after those of all that it told before.
func (g *Guest) NewID(p id.Prefix) string { return g.ids.New(p, time.Now()) }

func (g *Guest) addEvent(ctx context.Context, p event.Payload, m event.Meta) {
	if !g.AllowsEvents() {
		return
	}
	call := web.FromContext(ctx)
	m.SessionID, m.RequestID, m.Traceparent, m.Instance = g.ID, call.ID, call.Traceparent, g.controller.instance
	if m.ID == "" {
		m.ID = g.ids.New(id.Event, m.Now)
	}
	g.events = append(g.events, event.New(m, p))
}

// FinishResult is what became of what a request left behind. Most routes need not ask.
type FinishResult struct {
	SaveErr   error // why Redis does not have what changed; session.ErrCleared: the session is over; nil: it has
	EventsErr error // why events were lost; nil: none was
}

// Finish writes what the request changed, in one Redis round trip of at most 100 ms, and its events, before the answer is
// written: after the response there is nothing. A request that changed nothing of the session, a minute within the last,
// leaves the session alone, and costs no round trip. Losing either costs no guest an answer, so both are noted, and told
// to those who ask. more adds to the round trip, or makes one. It names the session to the client, unless it was seen to
// be cleared meanwhile.
func (d *Controller) Finish(ctx context.Context, w http.ResponseWriter, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner)) FinishResult {
	defer web.FromContext(ctx).Phase("finish")()
	unsaved := d.save(ctx, g, history, more)
	return d.finishResponse(ctx, w, g, unsaved)
}

// FinishRequired is Leave for a request that is refused unless Redis takes what it changed: when it does not, which is the
// error, nothing is told of the request and the client is not named a session that it will not hear of.
func (d *Controller) FinishRequired(ctx context.Context, w http.ResponseWriter, g *Guest, more func(redis.Pipeliner)) error {
	defer web.FromContext(ctx).Phase("finish")()
	if err := d.save(ctx, g, nil, more); err != nil {
		return err
	}
	return d.finishResponse(ctx, w, g, nil).SaveErr
}

// finishResponse ends what save began.
func (d *Controller) finishResponse(ctx context.Context, w http.ResponseWriter, g *Guest, unsaved error) FinishResult {
	call := web.FromContext(ctx)
	left := FinishResult{SaveErr: unsaved}
	if left.SaveErr != nil && !g.Degraded {
		call.AddLogField("sessionNotSaved", left.SaveErr.Error())
	}
	if len(g.events) > 0 {
		taken, err := d.outbox.Record(ctx, g.ConsentKnown(), g.events...)
		if left.EventsErr = err; err != nil {
			call.AddLogField("telemetryLost", err.Error())
		} else if taken == 0 && d.isCleared(ctx, g) {
			left.SaveErr = session.ErrCleared
		}
	}
	if !errors.Is(left.SaveErr, session.ErrCleared) {
		session.SetCookie(w, g.ID)
	}
	web.MarkPrivate(w)
	return left
}

// errSessionMissing says that Redis lost the session between Admit and Leave: the next request finds it lost and builds it anew.
var errSessionMissing = errors.New("admission: the session was lost meanwhile")

// save writes to Redis, and learns there whether the guest refused telemetry or cleared the session since Admit, and
// which preferences this request was the one to change.
func (d *Controller) save(ctx context.Context, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner)) error {
	if g.Degraded {
		return redisclient.ErrUnavailable
	}
	visits := g.NeedsSave() || history != nil || len(g.events) > 0
	pipe := d.pipeline()
	g.check.enqueueUpdates(ctx, pipe, g.Session)
	var visited *redis.Cmd
	if visits {
		visited = d.sessions.EnqueueSave(ctx, pipe, g.Session, history)
	}
	if more != nil {
		more(pipe)
	}
	if pipe.Len() == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout) // a guest who hung up was here all the same
	defer cancel()
	failed := lua.Exec(within, pipe)
	if !visits {
		return failed
	}
	saved, err := d.sessions.ResolveSave(g.Session, visited)
	switch {
	case err != nil:
		return err
	case saved.Cleared:
		g.events = nil
		d.sessions.RemoveLastSeen(within, d.rdb, g.ID) // if it fails, the sweep finds the id in 30 days and says nothing of it
		return session.ErrCleared
	case saved.Missing:
		return errSessionMissing // the events stay: Postgres has the last word on them
	case saved.OptedOut:
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

func sessionStarted(g *Guest) event.SessionStarted {
	e := event.SessionStarted{
		GuestSessionID: g.ID, CreatedAt: g.CreatedAt,
		LocalePreference: string(g.Locale), CurrencyPreference: string(g.Currency),
		FingerprintHash: g.Fingerprint, IPHash: g.Request.IPHash(), UserAgentClass: g.Request.UserAgentClass,
	}
	if c := g.Campaign; c != nil {
		e.CampaignAttribution = &event.Campaign{Source: c.Source, Medium: c.Medium, Campaign: c.Campaign}
	}
	return e
}
