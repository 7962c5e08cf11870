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

// Guest is an admitted request: its session, the suspended tenants, and the events it buffers until Finish. It belongs to one
// request and is not safe for concurrent use.
type Guest struct {
	*session.Session
	Request   *session.Request
	Suspended *tenants.SuspendedSet

	ids        id.Monotonic // of its events, which the relay sends in the order of their ids
	events     []event.Event
	controller *Controller
	check      *gate.Check
}

// Reads queues a handler's own reads on the pipeline of Begin, so that they share its round trip. request.ID is the session
// id of the cookie, or empty. The request may end up with another session than that one, because the cookie of another
// browser or system leads to a new session; compare with Guest.ID before using what is read of a session.
type Reads func(ctx context.Context, pipe redis.Pipeliner, request *session.Request)

// IsRetry reports, once the pipeline of BeginRetry has run, whether the request repeats an earlier one of the cookie's
// session that was answered or still runs.
type IsRetry func() bool

// Begin admits a request to a personal route. It takes one Redis round trip of at most 100 ms, for the gate, the session, the
// suspended tenants and reads, which may be nil. It writes the rate-limit headers to w. The returned context tells upstreams
// on whose behalf they are called.
//
// Without Redis the guest is admitted with a degraded session. If Redis lost the session, Begin asks Postgres for the guest's
// consent, within 150 ms. The gate may add up to 700 ms for a client that looks like a bot; see gate.Check.Decide. Every
// error is a problem: the request is malformed, or the gate rejects or challenges its client.
func (c *Controller) Begin(w http.ResponseWriter, r *http.Request, reads Reads) (context.Context, *Guest, error) {
	return c.begin(w, r, reads, nil)
}

// BeginRetry is Begin for a request that may repeat an earlier one. A retry is charged as a read instead of its own class, in
// a second round trip of at most 100 ms. Call Guest.ChargeRetry before doing the work of such a request again.
func (c *Controller) BeginRetry(w http.ResponseWriter, r *http.Request, reads Reads, isRetry IsRetry) (context.Context, *Guest, error) {
	return c.begin(w, r, reads, isRetry)
}

func (c *Controller) begin(w http.ResponseWriter, r *http.Request, reads Reads, isRetry IsRetry) (context.Context, *Guest, error) {
	ctx := r.Context()
	call := web.FromContext(ctx)
	defer call.Phase("begin")()
	if err := web.RejectQuery(r); err != nil { // a personal route takes its input from headers and body alone
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
	lua.Exec(within, pipe) // the error of each command reaches the package that queued it
	cancel()
	found := c.sessions.Resolve(request, readSession)
	// An idempotency key belongs to a session, so a request that starts a new session repeats nothing.
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

// ChargeRetry charges a retry, which BeginRetry charged as a read, to its own class. Call it before doing the work of a retry
// whose original request failed. It takes one round trip of at most 100 ms and returns a rate-limit problem if the client
// has no quota left. For a request that is no retry it does nothing.
func (g *Guest) ChargeRetry(ctx context.Context, w http.ResponseWriter) error {
	decision := g.check.ChargeRetry(ctx)
	decision.WriteHeaders(w.Header())
	if decision.Outcome != gate.Allow {
		return decision.Problem
	}
	return nil
}

// CountRejected charges the rate limits for a request to a personal route that the handler rejects before Begin, because it
// is malformed. Handlers return CountRejected(w, r, err) instead of err: otherwise malformed requests would be free. It takes
// one round trip of at most 100 ms and writes the rate-limit headers to w. It returns err, or the problem with which the gate
// rejects or challenges the client. Without Redis the limits are those of this instance.
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

// BeginAnonymous admits a request to a shared route, whose response is the same for everybody: it reads no cookie and has no
// session. It takes one Redis round trip of at most 100 ms, for the gate, the suspended tenants and reads, which may be nil.
// Only a rejection carries the rate-limit headers, because any other response may be stored for everybody. The returned
// context tells upstreams nothing of the client. Without Redis the request is admitted within the limits of this instance.
// Every error is a problem with which the gate rejects or challenges the client.
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
	lua.Exec(within, pipe) // the error of each command reaches the package that queued it
	cancel()
	if decision := check.Decide(ctx, unreadSession(r.Header, "")); decision.Outcome != gate.Allow {
		decision.WriteHeaders(w.Header())
		return ctx, nil, decision.Problem
	}
	suspended := c.tenants.Resolve(ctx, readSuspended)
	return upstream.WithCaller(ctx, upstream.Caller{RequestID: call.ID, Traceparent: call.Traceparent}), suspended, nil
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
