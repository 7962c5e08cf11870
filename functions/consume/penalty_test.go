package consume

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// A replay raises the bot score of the fingerprint's next requests. The test uses the fingerprint
// of a tool, because only verdicts above human are recorded.
func TestConsume_ReplayRaisesBotScoreOfFingerprint(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)
	if err := os.WriteFile(e.FlagsFile, []byte(`{"limitsEnabled":false,"botMode":"enforce"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.BuildDeps(e)
	h.Mount("GET "+web.BasePath+"/session", func(w http.ResponseWriter, r *http.Request) error {
		ctx, guest, err := h.Deps.Guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		h.Deps.Guests.Finish(ctx, w, guest, nil, nil)
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	h.APIDocument, h.BasePath = "", ""
	getSession := func(agent string) int {
		return h.Do("GET", web.BasePath+"/session", "", "", "User-Agent", agent, "Accept", "*/*", "Accept-Language", "fa-AF").StatusCode
	}
	const tool = "curl/8.5.0"
	getSession(tool)
	m := h.mint()
	h.Exec("UPDATE bff_consumer.handoff_replay_log SET fingerprint_hash = (SELECT fingerprint_hash FROM bff_consumer.bot_score_log) WHERE id = $1", m.id)
	h.postConsume(m, id.New(id.Session, h.Now()))
	h.postConsume(m, id.New(id.Session, h.Now()))
	h.Advance(2 * time.Minute)
	if status := getSession(tool); status != 429 {
		t.Errorf("got status %d; want 429", status)
	}
	signals := queryValue[string](h, "SELECT signals::text FROM bff_consumer.bot_score_log WHERE action_taken = 'challenge' ORDER BY evaluated_at DESC LIMIT 1")
	if !strings.Contains(signals, `{"kind": "fingerprint-collision", "detail": "handoff-replayed", "weight": 0.05}`) {
		t.Error(signals)
	}
}
