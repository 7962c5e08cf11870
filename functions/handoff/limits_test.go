package handoff

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

func TestAHandoffThatIsRefusedByALimitLeavesNoClaim(t *testing.T) {
	h := &house{House: functest.New(t)}
	h.up = newUpstreams(t)
	e := functest.Environment(t, h.Database, h.Redis.Addr, h.up.URL)
	if err := os.WriteFile(e.FlagsFile, []byte(`{"botMode":"off","limits":{"handoff":{"cookie":4,"ip":1000,"fingerprint":1000}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.open(e)
	guest := h.guest("first")
	h.mint(h.body(), guest...)
	claims := func() string { return fmt.Sprint(h.RDB.Keys(t.Context(), "*:idem:*").Val()) }
	before, calls := claims(), h.up.Calls()
	guest[3] = "second"
	for range 2 {
		a := h.post(h.body(), guest...)
		if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Header.Get("RateLimit"), `"handoff-cookie";r=0;`) {
			t.Fatalf("%d %v %s", a.StatusCode, a.Header, a.Text)
		}
	}
	if after := claims(); after != before {
		t.Errorf("%s are left of what was %s", after, before)
	}
	if h.Count("handoff_replay_log") != 2 || h.up.Calls() != calls {
		t.Errorf("%d minted, %d upstream calls", h.Count("handoff_replay_log"), h.up.Calls()-calls)
	}
}
