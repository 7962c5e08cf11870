package telemetry

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// harness serves the functions of this module with real stores, which tests can break, and no
// upstream.
type harness struct{ *functest.Harness }

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{functest.NewWithProxy(t)}
	h.Personal = true
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)
	e.Postgres.MaxConns = 8
	h.BuildDeps(e)
	for pattern, handler := range routes(h.Deps) {
		h.Mount(pattern, handler)
	}
	return h
}

func propertyID(n int) string { return functest.PropertyID(n) }
func tenantID(n int) string   { return functest.TenantID(n % 7) }
