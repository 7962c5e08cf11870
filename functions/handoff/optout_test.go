package handoff

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// countOptOuts returns the number of sessions that are recorded as opted out.
func (h *harness) countOptOuts() int {
	return h.Count("session_choice WHERE NOT telemetry AND cleared_at IS NULL")
}

// reportReplay writes the event of a replay as functions/consume does, which knows the session from
// the ledger only.
func (h *harness) reportReplay(session string) {
	h.T.Helper()
	e := event.New(event.Meta{SessionID: session, Now: h.Now()}, event.BotSuspected{GuestSessionID: session, EvaluatedAt: h.Now()})
	err := pgx.BeginFunc(context.Background(), h.Deps.DB, func(tx pgx.Tx) error { return outbox.Add(context.Background(), tx, e) })
	if err != nil {
		h.T.Fatal(err)
	}
}

func TestHandoffMint_RecordsBrowserOptOut(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"DNT": "DNT", "GPC": "Sec-GPC"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			for _, key := range []string{"k1", "k2"} {
				cookie := h.mustMint(h.requestBody(), "Idempotency-Key", key, header, "1").SessionCookie()
				h.reportReplay(cookie)
				h.mustMint(h.requestBody(), "Idempotency-Key", key+"-again", "Cookie", "gms_id="+cookie)
			}
			if n := h.countOptOuts(); n != 2 {
				t.Errorf("got %d recorded opt-outs; want 2", n)
			}
			if n := h.Count("outbox"); n != 0 {
				t.Errorf("got %d events; want 0", n)
			}
		})
	}
}

func TestHandoffMint_OptOutSurvivesRedisLoss(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*harness){"wiped": (*harness).FlushRedis, "hanging": func(h *harness) { h.Redis.Hang() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			cookie := h.mustMint(h.requestBody(), "Idempotency-Key", "k1", "DNT", "1").SessionCookie()
			lose(h)
			// without the opt-out header
			h.mustMint(h.requestBody(), "Idempotency-Key", "k2", "Cookie", "gms_id="+cookie)
			if n, minted := h.Count("outbox"), h.Count("handoff_replay_log"); n != 0 || minted != 2 {
				t.Errorf("got %d events, %d handoffs; want 0 and 2", n, minted)
			}
		})
	}
}

func TestHandoffMint_ExplicitConsentOverridesBrowserSignal(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.mustMint(h.requestBody(), "Idempotency-Key", "k1").SessionCookie()
	h.Exec(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, true, true, now())`, cookie)
	h.Redis.Hang() // only Postgres knows the decision
	h.mustMint(h.requestBody(), "Idempotency-Key", "k2", "Cookie", "gms_id="+cookie, "DNT", "1")
	if n := h.Count("session_choice WHERE telemetry AND marketing"); n != 1 {
		t.Error("the DNT header replaced the recorded consent")
	}
}

func TestHandoffMint_OptedOutGuestUsesOnePostgresRoundTrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var trips, sent atomic.Int64
	h.Deps.DB = tracedPool(t, h.Deps.DB, "counted", func(step string) {
		if step != "read" {
			sent.Add(1)
		} else if sent.Swap(0) > 0 {
			trips.Add(1)
		}
	})
	h.mountWithKeys(activeKey)
	// a new connection reads types once
	cookie := h.mustMint(h.requestBody(), "Idempotency-Key", "k1", "DNT", "1").SessionCookie()
	trips.Store(0)
	h.mustMint(h.requestBody(), "Idempotency-Key", "k2", "DNT", "1", "Cookie", "gms_id="+cookie)
	if n := trips.Load(); n != 1 {
		t.Errorf("got %d round trips; want 1", n)
	}
}

func TestHandoffMint_UnknownConsentIsCheckedInTransaction(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	agrees, refuses := h.guestHeaders("k1"), h.guestHeaders("k2")
	h.Exec(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, now())`, refuses[1][len("gms_id="):])
	events, minted := len(h.Messages(initiatedSubject)), h.Count("handoff_replay_log")
	h.FlushRedis()

	// The lock keeps the first mint from reading the consent. It ends when that mint waits inside
	// its transaction.
	blocker, err := h.Deps.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Rollback(context.Background())
	if _, err := blocker.Exec(t.Context(), `LOCK TABLE bff_consumer.session_choice IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	first := make(chan *response)
	go func() { first <- h.post(h.requestBody(), agrees...) }()
	h.waitForLockWait("%INSERT INTO bff_consumer.idempotency_keys%")
	if err := blocker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-first; a.StatusCode != 201 || "gms_id="+a.SessionCookie() != agrees[1] {
		t.Fatalf(`got %d %s; want status 201, the cookie of %s`, a.StatusCode, a.Text, agrees[1])
	}
	h.mustMint(h.requestBody(), refuses...) // consent is not read for a second after a timeout
	if n := len(h.Messages(initiatedSubject)) - events; n != 1 {
		t.Errorf("got %d events of %d handoffs; want 1 event, of the guest with consent", n, h.Count("handoff_replay_log")-minted)
	}
}

// waitForLockWait returns when a statement that matches the LIKE pattern waits for a lock.
func (h *harness) waitForLockWait(statement string) {
	h.T.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var n int
		err := h.Deps.DB.QueryRow(context.Background(), `
			SELECT count(*)
			FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`, statement).Scan(&n)
		if err != nil {
			h.T.Fatal(err)
		}
		if n > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.T.Fatalf("no statement like %s waited for a lock within 15 s", statement)
		}
	}
}
