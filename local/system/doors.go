package system

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/tenant"
	"melmastoon.ghasi.io/bff-consumer/shared/caller/issuer"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// doorsBase is what the paths of private doors begin with. On the platform they have an address of their own, which the
// API gateway does not route to.
const doorsBase = "/internal"

// publicAPI and privateAPI are the two descriptions of what is served.
func (o Options) publicAPI() string  { return filepath.Join(o.Root, "api", "consumer.openapi.yaml") }
func (o Options) privateAPI() string { return filepath.Join(o.Root, "api", "internal.openapi.yaml") }

// fronts are the public API and the private doors, over all functions. paths are those of the private doors that events
// and ticks are pushed to, by function.
func (o Options) fronts() (public, private http.Handler, paths map[string]string, err error) {
	operations, err := gateway.Operations(o.publicAPI())
	if err != nil {
		return nil, nil, nil, err
	}
	if public, err = gateway.New(web.Base, operations, web.Functions()); err != nil {
		return nil, nil, nil, err
	}
	if operations, err = gateway.Operations(o.privateAPI()); err != nil {
		return nil, nil, nil, err
	}
	if private, err = gateway.New(doorsBase, operations, web.Functions()); err != nil {
		return nil, nil, nil, err
	}
	paths, err = pushPaths(operations)
	return public, private, paths, err
}

// pushPaths finds where the messages of each subscription are pushed to, by function.
func pushPaths(operations []gateway.Operation) (map[string]string, error) {
	paths := map[string]string{}
	for _, s := range broker.Pushed() {
		at := slices.IndexFunc(operations, func(op gateway.Operation) bool { return op.Function == s.Function })
		if at < 0 || operations[at].Method != http.MethodPost {
			return nil, fmt.Errorf("system: %s is pushed to %s: the API document has no such POST", s.Name, s.Function)
		}
		paths[s.Function] = operations[at].Path
	}
	return paths, nil
}

// below makes URLs of paths.
func below(base string, paths map[string]string) map[string]string {
	urls := map[string]string{}
	for function, path := range paths {
		urls[function] = base + path
	}
	return urls
}

// project is what the local Pub/Sub calls ours, unless PUBSUB_PROJECT says otherwise.
const project = "melmastoon-local"

// openBroker connects to the emulator that the environment names, or starts one.
func (s *System) openBroker(ctx context.Context) (*broker.Broker, error) {
	b, err := broker.Open(ctx, broker.Options{Host: os.Getenv("PUBSUB_EMULATOR_HOST"), Project: cmp.Or(os.Getenv("PUBSUB_PROJECT"), project)})
	if err != nil {
		return nil, err
	}
	s.later(b.Close)
	return b, nil
}

// openTenant makes the BFF of a tenant and adds to env what lets its calls in: the keys of an issuer that takes the
// place of Google's for this run.
func openTenant(state, door string, env map[string]string) (*tenant.BFF, error) {
	id, err := issuer.New("local-" + rand.Text()[:8])
	if err != nil {
		return nil, err
	}
	keySet := filepath.Join(state, "caller-keys.json")
	if err := os.WriteFile(keySet, id.KeySet(), 0o600); err != nil {
		return nil, err
	}
	env["CALLER_ISSUER"], env["CALLER_KEYS"] = issuer.Name, keySet
	env["CALLER_AUDIENCE"], env["CALLER_ACCOUNTS"] = tenant.Audience, tenant.Account
	keys, err := handoff.ParseKeys(env["HANDOFF_KEYS"])
	if err != nil {
		return nil, err
	}
	return tenant.New(door, keys, id, time.Now), nil
}
