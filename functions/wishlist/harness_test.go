package wishlist

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

// house is the functions of this module with real stores, which tests take away, and upstreams that tests command.
type house struct {
	*functest.House
	up *functest.Upstreams
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{functest.Behind(t), newUpstreams(t)}
	h.Personal = true
	e := functest.Environment(t, h.Database, h.Redis.Addr, h.up.URL)
	e.DBMaxConns = 8
	h.Open(e)
	for pattern, handler := range routes(h.Parts) {
		h.Mount(pattern, handler)
	}
	return h
}

func propertyID(n int) string { return functest.PropertyID(n) }
func tenantID(n int) string   { return functest.TenantID(n % 7) }
