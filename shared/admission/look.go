package admission

import (
	"context"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Look is a request to a shared route that was let in. It is nobody's: there is no session, and no cookie was read.
type Look struct {
	Suspended *tenants.Suspended
	Seen      *cache.Peeked // what Redis has under the key of its answer
}

// Look is the way in to a shared route: one Redis round trip of at most 100 ms, and without Redis what the rooms say then.
// Only a refusal says how the client stands with the limits: any other answer may be stored for everybody, and depends on
// nothing but its URL, language and currency. The context it returns tells upstreams nothing of the client.
func (d *Door) Look(w http.ResponseWriter, r *http.Request, key string) (context.Context, *Look, error) {
	ctx := r.Context()
	call := web.From(ctx)
	defer call.Phase("begin")()
	client := d.sessions.Client(r)
	pipe := d.rdb.Pipeline()
	gate := d.ask(r, pipe, &client, "", false) // whose requests they are is not known, and a page may prefetch
	suspended := d.tenants.Peek(ctx, pipe)
	seen := d.cache.Peek(ctx, pipe, key)
	within, cancel := d.counting(ctx)
	lua.Exec(within, pipe) // each command carries its own error
	cancel()
	if standing, err := gate.open(ctx, nil, nil); err != nil {
		if standing != nil {
			standing.Write(w.Header())
		}
		return ctx, nil, err
	}
	look := &Look{d.tenants.Settle(ctx, suspended), seen}
	return upstream.WithCaller(ctx, upstream.Caller{RequestID: call.ID, Traceparent: call.Traceparent}), look, nil
}
