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

// noDNS is a resolver that is away: no test asks the DNS.
type noDNS struct{}

func (noDNS) LookupAddr(context.Context, string) ([]string, error) { return nil, errNoDNS }
func (noDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errNoDNS
}

var errNoDNS = errors.New("functest: there is no DNS")

// UnreachableURL is where no upstream answers.
const UnreachableURL = "http://127.0.0.1:9"

// Environment is that of a guest-facing function, with every upstream at one URL, and with limits and the hunt for bots
// turned off: a test is one guest who asks a lot.
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

// Keyring is a key ring, the same in every test.
func Keyring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BuildDeps makes h.Parts as setup.Guest does, but by the clock of the house.
func (h *Harness) BuildDeps(e wiring.Environment) {
	h.T.Helper()
	var err error
	if h.Deps, err = wiring.New(context.Background(), e, h.Now, nil); err != nil {
		h.T.Fatal(err)
	}
	db := h.Deps.DB // a test may put another in its place
	h.T.Cleanup(func() {
		h.Heal()
		db.Close()
	})
	h.RoundTrips = redistest.Count(h.Deps.Redis)
}
