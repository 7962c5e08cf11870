package session

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

// house is the functions of this module with real stores, which tests take away, and no upstream at all.
type house struct{ *functest.House }

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{functest.Behind(t)}
	h.Personal = true
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.Nowhere)
	e.DBMaxConns = 8
	h.Open(e)
	for pattern, handler := range routes(h.Parts) {
		h.Mount(pattern, handler)
	}
	return h
}

func propertyID(n int) string { return functest.PropertyID(n) }
func tenantID(n int) string   { return functest.TenantID(n % 7) }
