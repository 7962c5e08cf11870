package admission_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

func TestWithoutRedisNobodyIsRefusedForIt(t *testing.T) {
	h := newHouse(t, enforce)
	token := solved(t, h.as(curl, "/read", ""))
	cookie := h.as(functest.Firefox, "/read", "").Cookie()
	h.Redis.Stop()
	for n := range 100 {
		for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
			if a := h.as(functest.Firefox, path, cookie); a.StatusCode >= 300 {
				t.Fatalf("%d, %s: %d %s", n, path, a.StatusCode, a.Text)
			}
		}
	}
	h.Advance(time.Minute)
	asked(t, h.as(curl, "/read", "")) // what a request says of itself is evidence still
	if a := h.as(curl, "/read", "", challenge.Header, token); a.StatusCode != 204 {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	if got := h.verdicts(); len(got) != 2 || h.Count(reports) != 2 {
		t.Errorf("%q", got)
	}
}

// away is a house whose Postgres can be taken away.
func away(t *testing.T) *house {
	h := &house{House: functest.Behind(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.Nowhere)
	if err := os.WriteFile(e.FlagsFile, []byte(enforce), 0o600); err != nil {
		t.Fatal(err)
	}
	h.API, h.Base = "", ""
	h.open(e)
	return h
}

func TestWithoutPostgresAVerdictHoldsAndItsEventWaits(t *testing.T) {
	for name, goes := range map[string]func(*house){"broken": func(h *house) { h.PG.Break() }, "hanging": func(h *house) { h.PG.Hang() }} {
		h := away(t)
		h.as(functest.Firefox, "/shared", "")
		goes(h)
		began := time.Now()
		asked(t, h.as(curl, "/read", ""))
		if took := time.Since(began); took > time.Second+functest.Late {
			t.Errorf("%s: answered after %v", name, took)
		}
		h.Heal()
		waiting := h.RDB.LRange(t.Context(), outbox.SpillKey(h.Parts.Keys), 0, -1).Val()
		if len(waiting) != 1 || !strings.Contains(waiting[0], "bot_suspected.v1") || len(h.verdicts()) != 0 {
			t.Errorf("%s: %q waits, %q", name, waiting, h.verdicts())
		}
		if !strings.Contains(h.Log.String(), `"verdictLost"`) {
			t.Errorf("%s: %s", name, h.Log)
		}
	}
}

func TestWithoutEitherStoreARobotIsToldSo(t *testing.T) {
	h := away(t)
	h.PG.Break()
	h.Redis.Stop()
	for n := range 5 {
		asked(t, h.as(curl+fmt.Sprint(n), "/read", ""))
		if a := h.as(functest.Firefox, "/shared", ""); a.StatusCode != 200 {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
}
