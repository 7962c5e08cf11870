package guest

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Guest is an admitted request: the session, the suspended tenants, and the events until Finish. A
// Guest belongs to a single request and is not safe for concurrent use.
type Guest struct {
	*session.Session
	Request   *session.Request
	Suspended *tenants.SuspendedSet

	ids        id.Monotonic // of events; the relay publishes events in the order of ids
	events     []event.Event
	controller *Controller
	check      *gate.Check
}

// Reads queues a handler's own reads on the pipeline of Begin, to share the round trip. request.ID
// is the session id of the cookie, or empty. The cookie of another browser or system leads to a new
// session, so compare request.ID with Guest.ID before using a read of the cookie's session.
type Reads func(ctx context.Context, pipe redis.Pipeliner, request *session.Request)

// IsRetry runs after the pipeline of BeginRetry. It reports whether the request repeats an earlier
// request of the cookie's session, answered or still running.
type IsRetry func() bool

// Begin admits a request to a personal route. Its costs are:
//
//   - A Redis round trip of at most 100 ms, or 800 ms with WithLongTimeout, for the gate, the
//     session, the suspended tenants and reads. reads may be nil. A server without some of the
//     scripts needs a second round trip within the same time.
//   - Up to 150 ms of Postgres for the guest's consent, if Redis lost the session or has no consent
//     of the session; see session.Store.RestoreConsent.
//   - Up to 300 ms of Redis or Postgres for the suspended tenants, if the copy of this instance is
//     stale; see tenants.SuspensionCache.Resolve.
//   - The time of gate.Check.Decide, for a client over a limit or with the score of a bot.
//   - CPU, and mutexes of the process during operations in memory.
//
// Begin writes the rate-limit headers to w and buffers session.started for a new session. The
// returned context carries the request id, the trace and the hashed session id for upstreams.
//
// Every error is a problem, with a nil Guest: query parameters, an unsupported X-Currency (both are
// charged as by CountRejected), or a client that the gate rejects or challenges. Without Redis, the
// guest of a cookie is admitted with a degraded session, a guest without a cookie with a new
// session that Finish cannot save, and each instance enforces the rate limits by itself. Neither a
// disconnect of the client nor the request's deadline ends the round trip or the query for the
// consent.
func (c *Controller) Begin(w http.ResponseWriter, r *http.Request, reads Reads) (context.Context, *Guest, error) {
	return c.begin(w, r, reads, nil)
}

// BeginRetry is Begin for a request with an idempotency key, with the same errors. isRetry runs
// only for the stored session of the cookie. If isRetry returns true, the request is charged as a
// read instead of its own class, in a second round trip of at most 100 ms that no disconnect or
// deadline ends. Call Guest.ChargeRetry before repeating the work of a retry.
func (c *Controller) BeginRetry(
	w http.ResponseWriter, r *http.Request, reads Reads, isRetry IsRetry,
) (context.Context, *Guest, error) {
	return c.begin(w, r, reads, isRetry)
}

func (c *Controller) begin(
	w http.ResponseWriter, r *http.Request, reads Reads, isRetry IsRetry,
) (context.Context, *Guest, error) {
	ctx := r.Context()
	call := web.FromContext(ctx)
	defer call.Phase("begin")()
	if err := web.RejectQuery(r); err != nil { // personal routes read headers and body alone
		return ctx, nil, c.CountRejected(w, r, err)
	}
	request, err := c.sessions.ParseRequest(r)
	if err != nil {
		return ctx, nil, c.CountRejected(w, r, err)
	}
	g := &Guest{Request: request, controller: c}
	pipe := c.pipeline()
	g.check = c.gate.Enqueue(ctx, pipe, c.class, gateClient(&request.Client, request.ID), r.Header)
	readSession := c.sessions.Enqueue(ctx, pipe, request)
	readSuspended := c.tenants.Enqueue(ctx, pipe)
	if reads != nil {
		reads(ctx, pipe, request)
	}
	within, cancel := c.beginContext(ctx)
	lua.Exec(within, pipe) // each package handles the errors of its own commands
	cancel()
	found := c.sessions.Resolve(request, readSession)
	// An idempotency key belongs to a session: a request with a new session is no retry.
	if isRetry != nil && !found.New && isRetry() {
		g.check.MarkRetry(ctx)
	}
	decision := g.check.Decide(ctx, gateSession(found))
	decision.WriteHeaders(w.Header())
	if decision.Outcome != gate.Allow {
		return ctx, nil, decision.Problem
	}
	g.Session = c.sessions.RestoreConsent(ctx, request, found)
	g.Suspended = c.tenants.Resolve(ctx, readSuspended)
	if g.Degraded {
		call.AddLogField("session", "degraded")
	}
	if g.New {
		g.Record(ctx, sessionStarted(g), 1)
	}
	return upstream.WithCaller(ctx, upstream.Caller{
		RequestID: call.ID, Traceparent: call.Traceparent, Bucket: c.sessions.Bucket(g.ID),
	}), g, nil
}

// ChargeRetry charges the full rate limit to a retry whose original request failed. Call it before
// doing the work. It returns a rate-limit problem if the client has no quota left, and nil
// otherwise; it writes the rate-limit headers to w. It takes a Redis round trip of at most 100 ms,
// or two for a rejected client; no disconnect or deadline ends them. A request other than a retry,
// a second call, and switched-off limits cost nothing and return nil. Without Redis, each instance
// enforces the limits by itself.
func (g *Guest) ChargeRetry(ctx context.Context, w http.ResponseWriter) error {
	decision := g.check.ChargeRetry(ctx)
	decision.WriteHeaders(w.Header())
	if decision.Outcome != gate.Allow {
		return decision.Problem
	}
	return nil
}

// CountRejected charges the rate limits for a request that the handler rejects before Begin.
// Handlers of personal routes return CountRejected(w, r, err) instead of err: otherwise malformed
// requests would be free. It returns err unchanged, or the gate's problem for a client over a limit
// or suspected as a bot, and writes the rate-limit headers to w.
//
// It takes a Redis round trip of at most 100 ms, or 800 ms with WithLongTimeout, and the time of
// gate.Check.Decide; with limits and bot detection switched off, it costs nothing. A disconnect of
// the client does not end the round trip. Without Redis, each instance enforces the limits by
// itself.
func (c *Controller) CountRejected(w http.ResponseWriter, r *http.Request, err error) error {
	ctx := r.Context()
	client, cookie := c.sessions.ParseClient(r), c.sessions.VerifiedID(r)
	pipe := c.pipeline()
	check := c.gate.Enqueue(ctx, pipe, c.class, gateClient(&client, cookie), r.Header)
	if pipe.Len() == 0 {
		return err
	}
	within, cancel := c.beginContext(ctx)
	lua.Exec(within, pipe)
	cancel()
	decision := check.Decide(ctx, unreadSession(r.Header, cookie))
	decision.WriteHeaders(w.Header())
	if decision.Outcome != gate.Allow {
		return decision.Problem
	}
	return err
}

// BeginAnonymous admits a request to a shared route, with the same response for everybody, in the
// class gate.Shared. It reads no cookie, no session and no query parameters. Its costs are a Redis
// round trip of at most 100 ms for the gate, the suspended tenants and reads (may be nil), up to
// 300 ms for the suspended tenants if the copy of this instance is stale, and the time of
// gate.Check.Decide. With WithLongTimeout, the round trip may take 800 ms in all, but each write
// and read keeps its usual 150 ms.
//
// Rejections alone carry the rate-limit headers, because any other response may be stored for
// everybody. The returned context carries the request id and the trace for upstreams, but nothing
// of the client. Every error is the gate's problem for the client, with a nil set; without an error
// the set is never nil, but may be unknown (SuspendedSet.Known). Without Redis, the request is
// admitted within the limits of this instance. A disconnect of the client does not end the round
// trip.
func (c *Controller) BeginAnonymous(
	w http.ResponseWriter, r *http.Request, reads func(context.Context, redis.Pipeliner),
) (context.Context, *tenants.SuspendedSet, error) {
	ctx := r.Context()
	call := web.FromContext(ctx)
	defer call.Phase("begin")()
	client := c.sessions.ParseClient(r)
	pipe := c.rdb.Pipeline()
	check := c.gate.Enqueue(ctx, pipe, gate.Shared, gateClient(&client, ""), r.Header)
	readSuspended := c.tenants.Enqueue(ctx, pipe)
	if reads != nil {
		reads(ctx, pipe)
	}
	within, cancel := c.beginContext(ctx)
	lua.Exec(within, pipe) // each package handles the errors of its own commands
	cancel()
	if decision := check.Decide(ctx, unreadSession(r.Header, "")); decision.Outcome != gate.Allow {
		decision.WriteHeaders(w.Header())
		return ctx, nil, decision.Problem
	}
	suspended := c.tenants.Resolve(ctx, readSuspended)
	return upstream.WithCaller(ctx, upstream.Caller{RequestID: call.ID, Traceparent: call.Traceparent}), suspended, nil
}

// sessionStarted returns the event for a session that this request started.
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
