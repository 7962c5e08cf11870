package guest

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Policies is all that has a say in whether a request is let in.
type Policies struct {
	Flags      *flags.Source
	Limits     *ratelimit.Limiter
	Bots       *bot.Detector
	Challenges *challenge.Service
	Now        func() time.Time
}

// check is what one request is asked before it comes in, by whichever way: ask puts the questions on the pipeline of that
// way, and open says whether the answers let it in. Nothing is done for a request, and no upstream is asked, until they do.
type check struct {
	controller  *Controller
	flags       *flags.Values // as they were when it was asked: one request is judged by one mode
	header      http.Header
	client      *session.Client
	addressHash string // hash of the address group
	sessionID   string // genuine id that it brought; empty: none, or not read on this route

	limits        *ratelimit.Pending
	botRead       *bot.Pending       // nil: nobody looks for bots
	challengeRead *challenge.Pending // nil: there is no cookie that it could be remembered for
	proof         challenge.Proof    // what it showed, where it was asked

	isRetry bool // it was let in as a repetition, and has taken a read
}

// countedKey is where a request to a personal route has its mark that it was asked.
type countedKey struct{}

// enqueueCheck queues what Redis has to say of a client; cookie is the genuine id that it brought, or empty: then none is counted.
// Only a request that counts is one more of its client's pace.
func (d *Controller) enqueueCheck(r *http.Request, pipe redis.Pipeliner, client *session.Client, cookie string, count bool) *check {
	ctx := r.Context()
	if asked, ok := ctx.Value(countedKey{}).(*bool); ok {
		*asked = true
	}
	g := &check{
		controller: d, flags: d.policies.Flags.Current(), header: r.Header, client: client, addressHash: client.IPHash(), sessionID: cookie,
	}
	g.limits = d.policies.Limits.Enqueue(ctx, pipe, d.class, g.limitClient())
	if g.flags.BotMode == flags.BotOff {
		return g
	}
	g.botRead = d.policies.Bots.Enqueue(ctx, pipe, g.botClient(), count)
	if cookie != "" {
		g.challengeRead = d.policies.Challenges.Enqueue(ctx, pipe, cookie)
	}
	return g
}

// limitClient is the client by its buckets.
func (g *check) limitClient() ratelimit.Client {
	who := ratelimit.Client{Cookie: g.sessionID, Fingerprint: g.client.GroupHash()}
	if g.client.HasIP() {
		who.Address = g.addressHash
	}
	return who
}

// botClient is the client by what is observed of it.
func (g *check) botClient() bot.Client {
	return bot.Client{Fingerprint: g.client.Fingerprint, Address: g.addressHash, Session: g.sessionID}
}

// decide says whether the request is let in, once the pipeline has run. s is whose it turned out to be, nil where that is
// not known. The error is the problem that it is refused with. Standing with the limits is nil while they are off.
func (g *check) decide(ctx context.Context, s *session.Session, again IsRetry) (*ratelimit.Result, error) {
	// A key is its session's: with a cookie from another browser it is another key, and another session each time.
	if again != nil && s != nil && !s.New && again() {
		g.limits = g.controller.policies.Limits.Reclassify(ctx, g.limits, ratelimit.Read, g.limitClient())
		g.isRetry = true
	}
	standing, err := g.resolveLimits(ctx)
	if err != nil {
		return standing, err
	}
	return standing, g.evaluateBot(ctx, s)
}

// resolveLimits is how the client stands with the limits; the error is that it asks for too much.
func (g *check) resolveLimits(ctx context.Context) (*ratelimit.Result, error) {
	standing := g.controller.policies.Limits.Resolve(ctx, g.limits)
	if standing != nil && standing.Refused {
		web.FromContext(ctx).AddLogField("limited", standing.Policy)
		return standing, problem.New(problem.RateLimited, "Please wait a little before you ask again.", nil).WithRetryAfter(standing.Reset)
	}
	return standing, nil
}

// CountRejected makes every request to a personal route count: also one that is refused before Admit, because it cannot be
// read. Its answer has the fields of the limits as all others do.
func (d *Controller) CountRejected(serve web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		asked := false
		r = r.WithContext(context.WithValue(r.Context(), countedKey{}, &asked))
		err := serve(w, r)
		if err == nil || asked {
			return err
		}
		ctx := r.Context()
		pipe := d.pipeline()
		client := d.sessions.ParseClient(r)
		g := d.enqueueCheck(r, pipe, &client, d.sessions.VerifiedID(r), d.countsCadence())
		if pipe.Len() == 0 {
			return err
		}
		within, cancel := d.redisContext(ctx)
		lua.Exec(within, pipe)
		cancel()
		standing, refused := g.decide(ctx, nil, nil)
		if standing != nil {
			standing.WriteHeaders(w.Header())
		}
		if refused != nil {
			return refused
		}
		return err
	}
}

// redisContext is the context of the round trip in. Who hangs up has asked all the same: else that would go around the limits.
func (d *Controller) redisContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
}

// countsCadence says whether requests to a personal route of this class are counted into their client's pace. Beacons are not:
// they come in bursts.
func (d *Controller) countsCadence() bool { return d.class != ratelimit.Telemetry }
