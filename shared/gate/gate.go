// Package gate decides whether to allow, challenge or reject a client's request. The decision
// combines three policies: the rate limits, the score of the bot detector, and challenges for
// suspect clients.
//
// The gate knows a client by hashes and by the session id of the cookie. It never reads or writes a
// session; the caller passes the facts about the session to Decide.
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

// Gate evaluates the requests of a process. Safe for concurrent use.
type Gate struct {
	flags      *flags.Source
	limits     *ratelimit.Limiter
	bots       *bot.Detector
	challenges *challenge.Service
	outbox     *outbox.Recorder
	instance   string
	now        func() time.Time
}

// New returns a gate with these policies. The gate records bot verdicts through recorder; instance
// is the producer name in their events. New dials nothing and never fails.
func New(
	flags *flags.Source, limits *ratelimit.Limiter, bots *bot.Detector, challenges *challenge.Service, recorder *outbox.Recorder,
	instance string, now func() time.Time,
) *Gate {
	return &Gate{flags, limits, bots, challenges, recorder, instance, now}
}

// Class is a kind of route: Read, Handoff, Telemetry or Shared.
type Class struct {
	limits        ratelimit.Class
	countsCadence bool // requests count towards the client's cadence
}

// The classes of routes.
var (
	Read      = Class{ratelimit.Read, true}
	Handoff   = Class{ratelimit.Handoff, true}
	Telemetry = Class{ratelimit.Telemetry, false} // beacons come in bursts
	Shared    = Class{ratelimit.Read, false}      // without a cookie; pages may prefetch
)

// Client identifies the sender of a request by hashes and by the session id of the cookie.
type Client struct {
	Fingerprint  string // sha256:<hex> of browser, system and language; session.Client.Fingerprint
	Group        string // sha256:<hex> of fingerprint and address group together
	Address      string // sha256:<hex> of the address group
	AddressKnown bool   // false: no rate limit by address
	UserAgent    string // sha256:<hex> of the user agent
	SessionID    string // genuine id of the cookie; empty: no cookie, or not read on this route
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

// Session is the caller's knowledge of the request's session when Decide runs.
type Session struct {
	ID           string // empty: the caller did not read the session
	New          bool   // this request started the session
	AllowsEvents bool   // as far as the caller knows, the guest did not opt out of telemetry
	ConsentKnown bool   // an event may wait in Redis for Postgres
}

// Check is the evaluation of a single request. Not safe for concurrent use.
type Check struct {
	gate   *Gate
	flags  *flags.Values // read once: the same mode applies to the whole request
	class  Class
	client Client
	header http.Header

	limits        *ratelimit.Pending
	botRead       *bot.Pending       // nil while bot detection is off
	challengeRead *challenge.Pending // nil without a session id: proofs are kept by session
	proof         challenge.Proof    // zero unless decideBot verified a proof

	isRetry bool // the request is charged as a read until ChargeRetry
}

// Enqueue queues the gate's commands on the caller's pipeline; the caller runs the pipeline with
// lua.Exec. The commands are up to three scripts for the rate limits (none while the limits are
// off) and, unless bot detection is off, one script and two or three reads for the bot detector and
// the challenges. Call Decide after the pipeline ran, also after a failure. Enqueue sends nothing
// and never fails; the Check is never nil and reads header until Decide returns.
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

// Outcome is the gate's verdict on a request.
type Outcome int

// The outcomes.
const (
	Allow     Outcome = iota
	Challenge         // the client may repeat the request with the solution of a challenge
	Reject            // the client asks for too much, or is certainly a bot
)

// Decision is the gate's answer for a single request.
type Decision struct {
	Outcome Outcome
	Problem *problem.Problem  // the response to the client; nil for Allow
	Limits  *ratelimit.Result // the client's quota; nil while the limits are off
}

// WriteHeaders sets the rate-limit fields of the response. Without Limits, for example while the
// limits are off, WriteHeaders sets no fields.
func (d Decision) WriteHeaders(h http.Header) {
	if d.Limits != nil {
		d.Limits.WriteHeaders(h)
	}
}

// Decide evaluates the replies of the pipeline. Call it once; it returns no error. Costs:
//
//   - A client over a rate limit is rejected with a RateLimited problem. A round trip of at most
//     100 ms refunds its other buckets.
//   - A client with a human score costs CPU, and mutexes of the process for a moment. The first
//     such evaluation of a process also builds the rules of user agents.
//   - For any other client, Decide verifies the token in the request: up to 400 ms for reCAPTCHA,
//     CPU alone for a puzzle. Then it records the verdict in Postgres, within 300 ms, for the same
//     client, verdict and action at most once per clock minute and instance, and at most 600 times
//     a minute and instance.
//
// The bot mode turns the verdict into Allow, Challenge or Reject; the latter two have a
// SuspectedBot problem. An offered puzzle needs a key in the challenge service: without keys Decide
// panics.
//
// Without Redis, each instance enforces the limits by itself and the bot detector scores the
// request alone. Without Postgres, the row of the verdict is lost and logged; the event waits in
// Redis, for up to 500 ms more, if s.ConsentKnown, and is lost otherwise. Without reCAPTCHA, or
// after the end of ctx, a reCAPTCHA token proves nothing. A disconnect of the client ends neither
// the refund nor the record.
func (c *Check) Decide(ctx context.Context, s Session) Decision {
	d := c.decideLimits(ctx)
	if d.Outcome == Allow {
		d.Outcome, d.Problem = c.decideBot(ctx, s)
	}
	return d
}

// decideLimits evaluates the rate limits alone.
func (c *Check) decideLimits(ctx context.Context) Decision {
	quota := c.gate.limits.Resolve(ctx, c.limits)
	if quota != nil && quota.Refused {
		web.FromContext(ctx).AddLogField("limited", quota.Policy)
		p := problem.New(problem.RateLimited, "Please wait a little before you ask again.", nil).WithRetryAfter(quota.Reset)
		return Decision{Reject, p, quota}
	}
	return Decision{Allow, nil, quota}
}

// MarkRetry charges the request as a read and refunds its own class, for a request whose original
// was answered or still runs. Call it between the pipeline and Decide. It takes a round trip of at
// most 100 ms, which no disconnect or deadline ends; while the limits are off, it costs nothing. It
// never fails: without Redis, Decide charges the read to the instance's own buckets, and a lost
// refund is made up by time.
func (c *Check) MarkRetry(ctx context.Context) {
	c.isRetry = true
	c.limits = c.gate.limits.Reclassify(ctx, c.limits, ratelimit.Read, c.client.forLimits())
}

// ChargeRetry refunds the read of a marked retry, charges the request's own class, and decides by
// the rate limits alone: Allow, or Reject with a RateLimited problem. Call it before repeating the
// work of an original request that failed. Otherwise a client could send each key twice and pay for
// reads only. It takes a round trip of at most 100 ms, and a second one to refund a rejected
// request; no disconnect or deadline ends them. A request without MarkRetry, and a second call, are
// allowed at no cost. Without Redis, the instance's own buckets decide.
func (c *Check) ChargeRetry(ctx context.Context) Decision {
	if !c.isRetry {
		return Decision{}
	}
	c.isRetry = false
	c.limits = c.gate.limits.Reclassify(ctx, c.limits, c.class.limits, c.client.forLimits())
	return c.decideLimits(ctx)
}

// EnqueueUpdates queues the gate's memory of an allowed request on the caller's pipeline; the
// caller runs the pipeline with lua.Exec. The memory is the start of the session, if isNew, for 24
// hours, and the proof from Decide, if solved and not in Redis yet, for at most an hour: at most
// one script each. While bot detection is off, EnqueueUpdates queues nothing. It sends nothing and
// never fails. Without Redis the memory is lost, and the client may have to solve another
// challenge.
func (c *Check) EnqueueUpdates(ctx context.Context, pipe redis.Pipeliner, sessionID string, isNew bool) {
	if c.botRead == nil {
		return
	}
	if isNew {
		c.gate.bots.EnqueueSessionStart(ctx, pipe, c.client.forBots(), sessionID)
	}
	c.gate.challenges.EnqueueSave(ctx, pipe, sessionID, c.proof)
}
