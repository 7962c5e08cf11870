package admission

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// gate is what one request is asked before it comes in, by whichever way: ask puts the questions on the pipeline of that
// way, and open says whether the answers let it in. Nothing is done for a request, and no upstream is asked, until they do.
type gate struct {
	door   *Door
	client *session.Client
	spent  *ratelimit.Asked
}

// ask queues what Redis has to say of a client; cookie is the genuine id that it brought, or empty: then none is counted.
func (d *Door) ask(ctx context.Context, pipe redis.Pipeliner, client *session.Client, cookie string) *gate {
	who := ratelimit.Client{Cookie: cookie, Fingerprint: client.Group()}
	if client.IPKnown() {
		who.Address = client.IPHash()
	}
	return &gate{d, client, d.limits.Peek(ctx, pipe, d.class, who)}
}

// open says whether the request is let in, once the pipeline has run. The error is the problem that it is refused with.
// Standing with the limits is nil while they are off.
func (g *gate) open(ctx context.Context) (*ratelimit.Standing, error) {
	standing := g.door.limits.Settle(ctx, g.spent)
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
		err := serve(w, r)
		if err == nil || ratelimit.Written(w.Header()) {
			return err
		}
		ctx := r.Context()
		pipe := d.rdb.Pipeline()
		client := d.sessions.Client(r)
		g := d.ask(ctx, pipe, &client, d.sessions.Cookie(r))
		if pipe.Len() == 0 {
			return err
		}
		within, cancel := context.WithTimeout(ctx, patience)
		lua.Exec(within, pipe)
		cancel()
		standing, refused := g.open(ctx)
		if standing != nil {
			standing.Write(w.Header())
		}
		if refused != nil {
			return refused
		}
		return err
	}
}
