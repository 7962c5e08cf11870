package server

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

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// internalBase is what the paths of private doors begin with. On the platform they have an address of their own, which the
// API gateway does not route to.
const internalBase = "/internal"

// publicAPI and privateAPI are the two descriptions of what is served.
func (o Options) publicAPI() string   { return filepath.Join(o.Root, "api", "consumer.openapi.yaml") }
func (o Options) internalAPI() string { return filepath.Join(o.Root, "api", "internal.openapi.yaml") }

// handlers are the public API and the private doors, over all functions. paths are those of the private doors that events
// and ticks are pushed to, by function.
func (o Options) handlers() (public, private http.Handler, paths map[string]string, err error) {
	operations, err := gateway.Operations(o.publicAPI())
	if err != nil {
		return nil, nil, nil, err
	}
	if public, err = gateway.New(web.BasePath, operations, web.Functions()); err != nil {
		return nil, nil, nil, err
	}
	if operations, err = gateway.Operations(o.internalAPI()); err != nil {
		return nil, nil, nil, err
	}
	if private, err = gateway.New(internalBase, operations, web.Functions()); err != nil {
		return nil, nil, nil, err
	}
	paths, err = pushPaths(operations)
	return public, private, paths, err
}

// pushPaths finds where the messages of each subscription are pushed to, by function.
func pushPaths(operations []gateway.Operation) (map[string]string, error) {
	paths := map[string]string{}
	for _, s := range pubsub.PushSubscriptions() {
		at := slices.IndexFunc(operations, func(op gateway.Operation) bool { return op.Function == s.Function })
		if at < 0 || operations[at].Method != http.MethodPost {
			return nil, fmt.Errorf("system: %s is pushed to %s: the API document has no such POST", s.Name, s.Function)
		}
		paths[s.Function] = operations[at].Path
	}
	return paths, nil
}

// joinBase makes URLs of paths.
func joinBase(base string, paths map[string]string) map[string]string {
	urls := map[string]string{}
	for function, path := range paths {
		urls[function] = base + path
	}
	return urls
}

// defaultProject is what the local Pub/Sub calls ours, unless PUBSUB_PROJECT says otherwise.
const defaultProject = "melmastoon-local"

// openBroker connects to the emulator that the environment names, or starts one.
func (s *Server) openBroker(ctx context.Context) (*pubsub.Broker, error) {
	b, err := pubsub.OpenBroker(ctx, pubsub.BrokerOptions{Host: os.Getenv("PUBSUB_EMULATOR_HOST"), Project: cmp.Or(os.Getenv("PUBSUB_PROJECT"), defaultProject)})
	if err != nil {
		return nil, err
	}
	s.addCleanup(b.Close)
	return b, nil
}

// startMessaging starts telemetry collection, the push dispatcher and the scheduler. Stop stops them
// in reverse order and cuts off pushes under way.
func (s *Server) startMessaging(b *pubsub.Broker, db *pgxpool.Pool, endpoints map[string]string, backoff pubsub.Backoff) (*pubsub.PlatformEvents, *scheduler.Scheduler, *pubsub.TelemetryLog, error) {
	jobs, err := scheduler.New(b, db)
	if err != nil {
		return nil, nil, nil, err
	}
	events := pubsub.NewPlatformEvents(b)
	telemetry := b.CollectTelemetry()
	s.addCleanup(telemetry.Stop)
	dispatcher := b.StartDispatcher(endpoints, backoff, func(d pubsub.Delivery) {
		events.RecordDelivery(d)
		jobs.RecordDelivery(d)
	})
	s.addCleanup(dispatcher.Stop)
	jobs.Start(dispatcher)
	s.addCleanup(jobs.Stop)
	return events, jobs, telemetry, nil
}

// newTenantStub makes the BFF of a tenant and adds to env what lets its calls in: the keys of an issuer that takes the
// place of Google's for this run.
func newTenantStub(state, door string, env map[string]string) (*tenantstub.BFF, error) {
	id, err := oidctest.New("local-" + rand.Text()[:8])
	if err != nil {
		return nil, err
	}
	keySet := filepath.Join(state, "caller-keys.json")
	if err := os.WriteFile(keySet, id.KeySet(), 0o600); err != nil {
		return nil, err
	}
	env["CALLER_ISSUER"], env["CALLER_KEYS"] = oidctest.IssuerURL, keySet
	env["CALLER_AUDIENCE"], env["CALLER_ACCOUNTS"] = tenantstub.Audience, tenantstub.Account
	keys, err := handoff.ParseKeys(env["HANDOFF_KEYS"])
	if err != nil {
		return nil, err
	}
	return tenantstub.New(door, keys, id, time.Now), nil
}
