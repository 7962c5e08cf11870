package guest

import (
	"context"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Anonymous is a request to a shared route that was let in. It is nobody's: there is no session, and no cookie was read.
type Anonymous struct {
	Suspended  *tenants.SuspendedSet
	Prefetched *cache.Pending // what Redis has under the key of its answer
}

// BeginAnonymous is the way in to a shared route: one Redis round trip of at most 100 ms, and without Redis what the rooms say then.
// Only a refusal says how the client stands with the limits: any other answer may be stored for everybody, and depends on
// nothing but its URL, language and currency. The context it returns tells upstreams nothing of the client.
func (d *Controller) BeginAnonymous(w http.ResponseWriter, r *http.Request, key string) (context.Context, *Anonymous, error) {
	ctx := r.Context()
	call := web.FromContext(ctx)
	defer call.Phase("begin")()
	client := d.sessions.ParseClient(r)
	pipe := d.rdb.Pipeline()
	gate := d.enqueueCheck(r, pipe, &client, "", false) // whose requests they are is not known, and a page may prefetch
	suspended := d.tenants.Enqueue(ctx, pipe)
	seen := d.cache.Enqueue(ctx, pipe, key)
	within, cancel := d.redisContext(ctx)
	lua.Exec(within, pipe) // each command carries its own error
	cancel()
	if standing, err := gate.decide(ctx, nil, nil); err != nil {
		if standing != nil {
			standing.WriteHeaders(w.Header())
		}
		return ctx, nil, err
	}
	look := &Anonymous{d.tenants.Resolve(ctx, suspended), seen}
	return upstream.WithCaller(ctx, upstream.Caller{RequestID: call.ID, Traceparent: call.Traceparent}), look, nil
}
