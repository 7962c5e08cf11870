package functest

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// noDNS is a resolver that always fails: no test uses the DNS.
type noDNS struct{}

func (noDNS) LookupAddr(context.Context, string) ([]string, error) { return nil, errNoDNS }
func (noDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errNoDNS
}

var errNoDNS = errors.New("functest: no DNS in tests")

// UnreachableURL is a URL without a server.
const UnreachableURL = "http://127.0.0.1:9"

// Environment returns the configuration of a guest-facing function with all upstreams at the URL
// upstreams. Rate limits and bot detection are off, because a test sends many requests as a single
// guest.
func Environment(t testing.TB, database, redisAddr, upstreams string) wiring.Environment {
	t.Helper()
	flags := filepath.Join(t.TempDir(), "flags.json")
	if err := os.WriteFile(flags, []byte(`{"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return wiring.Environment{
		Environment: config.Environment{Env: "test", RedisAddr: redisAddr, Postgres: postgres.Config{URL: database, MaxConns: 4}}, Region: "asia-south1",
		SearchURL: upstreams, PricingURL: upstreams, PropertyURL: upstreams, ThemeURL: upstreams,
		UpstreamAuth: "none", FlagsFile: flags, SessionKeys: Keyring(t), Peppers: Keyring(t), DNS: noDNS{},
	}
}

// Keyring returns a key ring, the same in every test.
func Keyring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BuildDeps sets h.Deps as wiring.FromEnv does, but with the harness's clock.
func (h *Harness) BuildDeps(e wiring.Environment) {
	h.T.Helper()
	var err error
	if h.Deps, err = wiring.New(context.Background(), e, h.Now, nil); err != nil {
		h.T.Fatal(err)
	}
	db := h.Deps.DB // a test may replace h.Deps.DB
	h.T.Cleanup(func() {
		h.Heal()
		db.Close()
	})
	h.RoundTrips = redistest.Count(h.Deps.Redis)
}
