// Package gate decides whether a client's request is allowed, challenged or rejected. It combines three policies: the rate
// limits, the score of the bot detector, and the challenges that a suspect client may solve.
//
// The gate knows a client by hashes and by the session id of its cookie. It never reads or writes a session; the caller
// tells Decide what it found out about one.
package gate

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Gate evaluates the requests of one process. Safe for concurrent use.
type Gate struct {
	flags      *flags.Source
	limits     *ratelimit.Limiter
	bots       *bot.Detector
	challenges *challenge.Service
	outbox     *outbox.Recorder
	instance   string
	now        func() time.Time
}

// New returns a gate with these policies. It records verdicts on bots through recorder, under the producer name instance.
func New(
	flags *flags.Source, limits *ratelimit.Limiter, bots *bot.Detector, challenges *challenge.Service, recorder *outbox.Recorder,
	instance string, now func() time.Time,
) *Gate {
	return &Gate{flags, limits, bots, challenges, recorder, instance, now}
}

// Class is a kind of route. Its value is one of the variables below.
type Class struct {
	limits        ratelimit.Class
	countsCadence bool // a request of this class is one more in its client's cadence
}

// The classes of routes.
var (
	Read      = Class{ratelimit.Read, true}
	Handoff   = Class{ratelimit.Handoff, true}
	Telemetry = Class{ratelimit.Telemetry, false} // beacons come in bursts
	Shared    = Class{ratelimit.Read, false}      // the route reads no cookie, and a page may prefetch it
)

// Client is what identifies the sender of a request: hashes, and the session id of its cookie.
type Client struct {
	Fingerprint  string // sha256:<hex> of browser, system and language; session.Client.Fingerprint
	Group        string // sha256:<hex> of fingerprint and address group together
	Address      string // sha256:<hex> of the address group
	AddressKnown bool   // without an address there is no rate limit by address
	UserAgent    string // sha256:<hex> of the user agent
	SessionID    string // genuine id of the cookie; empty: there is none, or the route reads none
}

func (c *Client) forLimits() ratelimit.Client {
	l := ratelimit.Client{Cookie: c.SessionID, Fingerprint: c.Group}
	if c.AddressKnown {
		l.Address = c.Address
	}
	return l
}

func (c *Client) forBots() bot.Client {
	return bot.Client{Fingerprint: c.Fingerprint, Address: c.Address, Session: c.SessionID}
}

func (c *Client) forChallenge() challenge.Client {
	return challenge.Client{Fingerprint: c.Fingerprint, Address: c.Address}
}

// Session is what the caller knows of the request's session when it calls Decide.
type Session struct {
	ID           string // empty: the caller did not read the session
	New          bool   // this request started the session
	AllowsEvents bool   // as far as the caller knows, the guest did not opt out of telemetry
	ConsentKnown bool   // the caller knows the guest's decision, so an event may wait in Redis for Postgres
}

// Check is the evaluation of one request. It is not safe for concurrent use.
type Check struct {
	gate   *Gate
	flags  *flags.Values // read once, so that one mode applies to the whole request
	class  Class
	client Client
	header http.Header

	limits        *ratelimit.Pending
	botRead       *bot.Pending       // nil while bot detection is off
	challengeRead *challenge.Pending // nil without a session id: proofs are kept by session
	proof         challenge.Proof    // the zero value unless evaluateBot verified one

	isRetry bool // the request is charged as a read until ChargeRetry
}

// Enqueue queues the gate's commands on the caller's pipeline, which the caller runs with lua.Exec: up to three scripts that
// charge the rate limits, and, unless bot detection is off, one script and two or three reads for the bot detector and the
// challenges. Call Decide after the pipeline ran, also when it failed.
func (g *Gate) Enqueue(ctx context.Context, pipe redis.Pipeliner, class Class, client Client, header http.Header) *Check {
	c := &Check{gate: g, flags: g.flags.Current(), class: class, client: client, header: header}
	c.limits = g.limits.Enqueue(ctx, pipe, class.limits, c.client.forLimits())
	if c.flags.BotMode == flags.BotOff {
		return c
	}
	c.botRead = g.bots.Enqueue(ctx, pipe, c.client.forBots(), class.countsCadence)
	if client.SessionID != "" {
		c.challengeRead = g.challenges.Enqueue(ctx, pipe, client.SessionID)
	}
	return c
}

// Outcome is what happens to a request.
type Outcome int

// The outcomes.
const (
	Allow     Outcome = iota
	Challenge         // the client may repeat the request with the solution of a challenge
	Reject            // the client asks for too much, or is certainly a bot
)

// Decision is the gate's answer for one request.
type Decision struct {
	Outcome Outcome
	Problem *problem.Problem  // the response to the client; nil for Allow
	Limits  *ratelimit.Result // how the client stands with its rate limits; nil while they are off
}

// WriteHeaders sets the rate-limit fields of the response; none while the limits are off.
func (d Decision) WriteHeaders(h http.Header) {
	if d.Limits != nil {
		d.Limits.WriteHeaders(h)
	}
}

// Decide evaluates the replies of the pipeline. The rate limits come first: a client without quota is rejected, and what the
// request was charged is refunded in a round trip of at most 100 ms. A client that the bot detector takes for human, or that
// proved to be one, costs nothing more. For any other client Decide verifies the token that it sent (up to 400 ms for
// reCAPTCHA, no round trip for a puzzle) and records the verdict in Postgres (up to 300 ms, at most once a minute per client
// and instance).
//
// Decide never fails. Without Redis the limits are those of this instance and the bot detector sees the request alone.
// Without Postgres the row of the verdict is lost, which is logged, and its event waits in Redis if s allows that.
func (c *Check) Decide(ctx context.Context, s Session) Decision {
	d := c.decideLimits(ctx)
	if d.Outcome == Allow {
		d.Outcome, d.Problem = c.decideBot(ctx, s)
	}
	return d
}

func (c *Check) decideLimits(ctx context.Context) Decision {
	standing := c.gate.limits.Resolve(ctx, c.limits)
	if standing != nil && standing.Refused {
		web.FromContext(ctx).AddLogField("limited", standing.Policy)
		p := problem.New(problem.RateLimited, "Please wait a little before you ask again.", nil).WithRetryAfter(standing.Reset)
		return Decision{Reject, p, standing}
	}
	return Decision{Allow, nil, standing}
}

// MarkRetry charges the request as a read instead of its own class, because it repeats a request that was answered or still
// runs. Call it after the pipeline and before Decide. It takes one round trip of at most 100 ms.
func (c *Check) MarkRetry(ctx context.Context) {
	c.isRetry = true
	c.limits = c.gate.limits.Reclassify(ctx, c.limits, ratelimit.Read, c.client.forLimits())
}

// ChargeRetry charges a request that MarkRetry charged as a read to its own class after all, and decides by the rate limits
// alone. Call it before doing the work of a retry whose original request failed: otherwise a client that sends each key twice
// would have its work done at the price of reads. It takes one round trip of at most 100 ms, and another one to refund a
// request that it rejects. For any other request it does nothing and allows it.
func (c *Check) ChargeRetry(ctx context.Context) Decision {
	if !c.isRetry {
		return Decision{}
	}
	c.isRetry = false
	c.limits = c.gate.limits.Reclassify(ctx, c.limits, c.class.limits, c.client.forLimits())
	return c.decideLimits(ctx)
}

// EnqueueUpdates queues what the gate remembers of an allowed request on the caller's pipeline, which the caller runs with
// lua.Exec: that the client started the session, if isNew, and the proof that Decide verified, for at most an hour. It queues
// nothing while bot detection is off.
func (c *Check) EnqueueUpdates(ctx context.Context, pipe redis.Pipeliner, sessionID string, isNew bool) {
	if c.botRead == nil {
		return
	}
	if isNew {
		c.gate.bots.EnqueueSessionStart(ctx, pipe, c.client.forBots(), sessionID)
	}
	c.gate.challenges.EnqueueSave(ctx, pipe, sessionID, c.proof)
}
