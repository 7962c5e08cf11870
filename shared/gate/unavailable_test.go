package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestGate_WithoutRedisAdmitsBrowsersAndChallengesTools(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	token := solveChallenge(t, h.getAs(curlAgent, "/read", ""))
	cookie := h.getAs(functest.Firefox, "/read", "").SessionCookie()
	h.Redis.Stop()
	for n := range 100 {
		for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
			if a := h.getAs(functest.Firefox, path, cookie); a.StatusCode >= 300 {
				t.Fatalf("request %d to %s: got %d %s, want success", n, path, a.StatusCode, a.Text)
			}
		}
	}
	h.Advance(time.Minute)
	// the headers of a request are evidence without Redis
	requireChallenge(t, h.getAs(curlAgent, "/read", ""))
	if a := h.getAs(curlAgent, "/read", "", challenge.Header, token); a.StatusCode != 204 {
		t.Errorf("with the solution: got %d %s, want 204", a.StatusCode, a.Text)
	}
	if rows, reports := h.verdictRows(), h.Count(botReports); len(rows) != 2 || reports != 2 {
		t.Errorf("verdicts %q and %d reports, want 2 of each", rows, reports)
	}
}

// Serial: it measures the time of a response.
func TestGate_WithoutPostgresChallengesAndBuffersEvent(t *testing.T) {
	for name, outage := range map[string]func(*harness){
		"broken":  func(h *harness) { h.PostgresProxy.Break() },
		"hanging": func(h *harness) { h.PostgresProxy.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarnessWithProxy(t, enforceFlags)
			h.getAs(functest.Firefox, "/shared", "")
			outage(h)
			began := time.Now()
			requireChallenge(t, h.getAs(curlAgent, "/read", ""))
			if took, limit := time.Since(began), time.Second+functest.SlackTime; took > limit {
				t.Errorf("the response took %v, want at most %v", took, limit)
			}
			h.Heal()
			buffered := h.RDB.LRange(t.Context(), outbox.BufferKey(h.Deps.Keys), 0, -1).Val()
			if len(buffered) != 1 || !strings.Contains(buffered[0], "bot_suspected.v1") {
				t.Errorf("buffered events %q, want a single bot_suspected.v1", buffered)
			}
			if rows := h.verdictRows(); len(rows) != 0 {
				t.Errorf("verdicts %q, want none", rows)
			}
			if got := h.Log.Last(t)["verdictLost"]; got == nil {
				t.Error("the log has no field verdictLost")
			}
		})
	}
}

func TestGate_WithoutBothStoresChallengesTools(t *testing.T) {
	t.Parallel()
	h := newHarnessWithProxy(t, enforceFlags)
	h.PostgresProxy.Break()
	h.Redis.Stop()
	for n := range 5 {
		requireChallenge(t, h.getAs(curlAgent+fmt.Sprint(n), "/read", ""))
		if a := h.getAs(functest.Firefox, "/shared", ""); a.StatusCode != 200 {
			t.Errorf("browser: got %d %s, want 200", a.StatusCode, a.Text)
		}
	}
}
