package wishlist

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

func TestStore_PostgresUnavailableFailsWithinTimeout(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*localstores.Proxy){"broken": (*localstores.Proxy).Break, "hanging": (*localstores.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, proxy := newHarnessWithProxy(t)
			h.add(newAddRequest(1))
			outage(proxy)
			_, addErr := h.Add(t.Context(), h.session, newAddRequest(2))
			_, removeErr := h.Remove(t.Context(), h.session, newAddRequest(1).PropertyID)
			_, getErr := h.Get(t.Context(), h.session)
			for call, err := range map[string]error{"Add": addErr, "Remove": removeErr, "Get": getErr} {
				if !postgres.IsUnavailable(err) {
					t.Errorf("%s: error %v, want one of an unavailable Postgres", call, err)
				}
			}
		})
	}
}
