package admission

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

// Guard is all that has a say in whether a request is let in.
type Guard struct {
	Flags      *flags.Source
	Limits     *ratelimit.Room
	Bots       *bot.Room
	Challenges *challenge.Room
	Now        func() time.Time
}

// gate is what one request is asked before it comes in, by whichever way: ask puts the questions on the pipeline of that
// way, and open says whether the answers let it in. Nothing is done for a request, and no upstream is asked, until they do.
type gate struct {
	door    *Door
	flags   *flags.Values // as they were when it was asked: one request is judged by one mode
	header  http.Header
	client  *session.Client
	address string // hash of the address group
	cookie  string // genuine id that it brought; empty: none, or not read on this route

	spent *ratelimit.Asked
	seen  *bot.Read       // nil: nobody looks for bots
	shown *challenge.Read // nil: there is no cookie that it could be remembered for
	proof challenge.Proof // what it showed, where it was asked

	again bool // it was let in as a repetition, and has taken a read
}

// counts is where a request to a personal route has its mark that it was asked.
type counts struct{}

// ask queues what Redis has to say of a client; cookie is the genuine id that it brought, or empty: then none is counted.
// Only a request that counts is one more of its client's pace.
func (d *Door) ask(r *http.Request, pipe redis.Pipeliner, client *session.Client, cookie string, count bool) *gate {
	ctx := r.Context()
	if asked, ok := ctx.Value(counts{}).(*bool); ok {
		*asked = true
	}
	g := &gate{
		door: d, flags: d.guard.Flags.Current(), header: r.Header, client: client, address: client.IPHash(), cookie: cookie,
	}
	g.spent = d.guard.Limits.Peek(ctx, pipe, d.class, g.limited())
	if g.flags.BotMode == flags.BotOff {
		return g
	}
	g.seen = d.guard.Bots.Peek(ctx, pipe, g.who(), count)
	if cookie != "" {
		g.shown = d.guard.Challenges.Peek(ctx, pipe, cookie)
	}
	return g
}

// limited is the client by its buckets.
func (g *gate) limited() ratelimit.Client {
	who := ratelimit.Client{Cookie: g.cookie, Fingerprint: g.client.Group()}
	if g.client.IPKnown() {
		who.Address = g.address
	}
	return who
}

// who is the client by what is observed of it.
func (g *gate) who() bot.Client {
	return bot.Client{Fingerprint: g.client.Fingerprint, Address: g.address, Session: g.cookie}
}

// open says whether the request is let in, once the pipeline has run. s is whose it turned out to be, nil where that is
// not known. The error is the problem that it is refused with. Standing with the limits is nil while they are off.
func (g *gate) open(ctx context.Context, s *session.Session, again Again) (*ratelimit.Standing, error) {
	// A key is its session's: with a cookie from another browser it is another key, and another session each time.
	if again != nil && s != nil && !s.New && again() {
		g.spent = g.door.guard.Limits.Instead(ctx, g.spent, ratelimit.Read, g.limited())
		g.again = true
	}
	standing, err := g.settle(ctx)
	if err != nil {
		return standing, err
	}
	return standing, g.judge(ctx, s)
}

// settle is how the client stands with the limits; the error is that it asks for too much.
func (g *gate) settle(ctx context.Context) (*ratelimit.Standing, error) {
	standing := g.door.guard.Limits.Settle(ctx, g.spent)
	if standing != nil && standing.Refused {
		web.From(ctx).Note("limited", standing.Policy)
		return standing, problem.New(problem.RateLimited, "Please wait a little before you ask again.", nil).After(standing.Reset)
	}
	return standing, nil
}

// Counted makes every request to a personal route count: also one that is refused before Admit, because it cannot be
// read. Its answer has the fields of the limits as all others do.
func (d *Door) Counted(serve web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		asked := false
		r = r.WithContext(context.WithValue(r.Context(), counts{}, &asked))
		err := serve(w, r)
		if err == nil || asked {
			return err
		}
		ctx := r.Context()
		pipe := d.pipeline()
		client := d.sessions.Client(r)
		g := d.ask(r, pipe, &client, d.sessions.Cookie(r), d.counted())
		if pipe.Len() == 0 {
			return err
		}
		within, cancel := d.counting(ctx)
		lua.Exec(within, pipe)
		cancel()
		standing, refused := g.open(ctx, nil, nil)
		if standing != nil {
			standing.Write(w.Header())
		}
		if refused != nil {
			return refused
		}
		return err
	}
}

// counting is the context of the round trip in. Who hangs up has asked all the same: else that would go around the limits.
func (d *Door) counting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d.patience)
}

// counted says whether requests to a personal route of this class are counted into their client's pace. Beacons are not:
// they come in bursts.
func (d *Door) counted() bool { return d.class != ratelimit.Telemetry }
