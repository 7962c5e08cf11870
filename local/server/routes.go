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

// internalBase is the path prefix of the internal endpoints. On the platform the API gateway does
// not route to them.
const internalBase = "/internal"

// publicAPI and internalAPI return the paths of the two OpenAPI documents.
func (o Options) publicAPI() string   { return filepath.Join(o.Root, "api", "consumer.openapi.yaml") }
func (o Options) internalAPI() string { return filepath.Join(o.Root, "api", "internal.openapi.yaml") }

// handlers returns the handlers of the public API and of the internal endpoints. paths holds the
// paths of the internal endpoints that receive pushes, by function. handlers returns an error if an
// OpenAPI document and the functions disagree.
func (o Options) handlers() (public, internal http.Handler, paths map[string]string, err error) {
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
	if internal, err = gateway.New(internalBase, operations, web.Functions()); err != nil {
		return nil, nil, nil, err
	}
	paths, err = pushPaths(operations)
	return public, internal, paths, err
}

// pushPaths returns the paths that receive the messages of the push subscriptions, by function. It
// returns an error for a subscription whose function has no POST operation.
func pushPaths(operations []gateway.Operation) (map[string]string, error) {
	paths := map[string]string{}
	for _, s := range pubsub.PushSubscriptions() {
		at := slices.IndexFunc(operations, func(op gateway.Operation) bool { return op.Function == s.Function })
		if at < 0 || operations[at].Method != http.MethodPost {
			return nil, fmt.Errorf("server: subscription %s pushes to %s: the OpenAPI document has no such POST operation", s.Name, s.Function)
		}
		paths[s.Function] = operations[at].Path
	}
	return paths, nil
}

// joinBase prepends base to each path.
func joinBase(base string, paths map[string]string) map[string]string {
	urls := map[string]string{}
	for function, path := range paths {
		urls[function] = base + path
	}
	return urls
}

// defaultProject is the default of PUBSUB_PROJECT.
const defaultProject = "melmastoon-local"

// openBroker connects to the emulator of PUBSUB_EMULATOR_HOST, or starts a broker in this process.
func (s *Server) openBroker(ctx context.Context) (*pubsub.Broker, error) {
	b, err := pubsub.OpenBroker(ctx, pubsub.BrokerOptions{Host: os.Getenv("PUBSUB_EMULATOR_HOST"), Project: cmp.Or(os.Getenv("PUBSUB_PROJECT"), defaultProject)})
	if err != nil {
		return nil, err
	}
	s.addCleanup(b.Close)
	return b, nil
}

// startMessaging starts telemetry collection, the push dispatcher and the scheduler. Stop stops
// them in reverse order and cuts off pushes under way.
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

// newTenantStub returns a stub of a tenant's BFF that calls the internal endpoints below base. It
// adds variables to env, so that the functions accept the stub's ID tokens: the issuer of this run
// replaces Google's. It writes the issuer's public keys to the state directory.
func newTenantStub(state, base string, env map[string]string) (*tenantstub.BFF, error) {
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
	return tenantstub.New(base, keys, id, time.Now), nil
}
