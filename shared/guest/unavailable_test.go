package guest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestControllerBegin_WithoutRedisAdmitsBrowsers(t *testing.T) {
	h := newHarness(t, enforceFlags)
	token := solveChallenge(t, h.getAs(curlAgent, "/read", ""))
	cookie := h.getAs(functest.Firefox, "/read", "").SessionCookie()
	h.Redis.Stop()
	for n := range 100 {
		for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
			if a := h.getAs(functest.Firefox, path, cookie); a.StatusCode >= 300 {
				t.Fatalf("%d, %s: %d %s", n, path, a.StatusCode, a.Text)
			}
		}
	}
	h.Advance(time.Minute)
	requireChallenge(t, h.getAs(curlAgent, "/read", "")) // what a request says of itself is evidence still
	if a := h.getAs(curlAgent, "/read", "", challenge.Header, token); a.StatusCode != 204 {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	if got := h.verdictRows(); len(got) != 2 || h.Count(botReports) != 2 {
		t.Errorf("%q", got)
	}
}

// newHarnessWithProxy is a house whose Postgres can be taken away.
func newHarnessWithProxy(t *testing.T) *harness {
	h := &harness{Harness: functest.NewWithProxy(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)
	if err := os.WriteFile(e.FlagsFile, []byte(enforceFlags), 0o600); err != nil {
		t.Fatal(err)
	}
	h.APIDocument, h.BasePath = "", ""
	h.mountRoutes(e)
	return h
}

func TestCheck_WithoutPostgresKeepsVerdictAndBuffersEvent(t *testing.T) {
	for name, goes := range map[string]func(*harness){"broken": func(h *harness) { h.PostgresProxy.Break() }, "hanging": func(h *harness) { h.PostgresProxy.Hang() }} {
		h := newHarnessWithProxy(t)
		h.getAs(functest.Firefox, "/shared", "")
		goes(h)
		began := time.Now()
		requireChallenge(t, h.getAs(curlAgent, "/read", ""))
		if took := time.Since(began); took > time.Second+functest.SlackTime {
			t.Errorf("%s: answered after %v", name, took)
		}
		h.Heal()
		waiting := h.RDB.LRange(t.Context(), outbox.BufferKey(h.Deps.Keys), 0, -1).Val()
		if len(waiting) != 1 || !strings.Contains(waiting[0], "bot_suspected.v1") || len(h.verdictRows()) != 0 {
			t.Errorf("%s: %q waits, %q", name, waiting, h.verdictRows())
		}
		if !strings.Contains(h.Log.String(), `"verdictLost"`) {
			t.Errorf("%s: %s", name, h.Log)
		}
	}
}

func TestCheck_WithoutBothStoresChallengesBots(t *testing.T) {
	h := newHarnessWithProxy(t)
	h.PostgresProxy.Break()
	h.Redis.Stop()
	for n := range 5 {
		requireChallenge(t, h.getAs(curlAgent+fmt.Sprint(n), "/read", ""))
		if a := h.getAs(functest.Firefox, "/shared", ""); a.StatusCode != 200 {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
}
