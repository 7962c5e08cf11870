package consume

import (
	"strconv"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// penalty returns the penalty of the test's fingerprint in Redis.
func (h *harness) penalty() string {
	return h.RDB.Get(h.T.Context(), h.consume.replays.keys.Penalty(fingerprintHash)).Val()
}

func TestConsume_RetriedReplayIsCountedOnce(t *testing.T) {
	t.Parallel()
	key := []string{"Idempotency-Key", "second"}
	for _, c := range []struct {
		name  string
		by    string
		again []string
		want  int
	}{
		{"with the same key", "tenant-2", key, 1},
		{"under the alias", "tenant-2", []string{"X-Idempotency-Key", "second"}, 1},
		{"with another key", "tenant-2", []string{"Idempotency-Key", "third"}, 2},
		{"by another instance", "tenant-3", key, 2},
		{"without a key", "tenant-2", nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			m := h.mint()
			h.postConsume(m, "tenant-1", "Idempotency-Key", "first")
			first := h.postConsume(m, "tenant-2", key...)
			h.Advance(time.Second)
			again := h.postConsume(m, c.by, c.again...)
			if !first.hasStatus(409, "HANDOFF_REPLAYED") || !again.hasStatus(409, "HANDOFF_REPLAYED") {
				t.Errorf("got %s %s; want 409 HANDOFF_REPLAYED, 409 HANDOFF_REPLAYED", first.Text, again.Text)
			}
			events, verdicts := h.countReports()
			if events != c.want || verdicts != c.want || h.penalty() != strconv.Itoa(c.want) {
				t.Errorf("got %d events, %d verdicts, penalty %s; want %d", events, verdicts, h.penalty(), c.want)
			}
		})
	}
}

func TestConsume_ReplaysOfTwoHandoffsAreCountedSeparately(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 2 {
		m := h.mint()
		h.postConsume(m, "tenant-1", "Idempotency-Key", "first")
		h.postConsume(m, "tenant-2", "Idempotency-Key", "second")
	}
	if events, verdicts := h.countReports(); events != 2 || verdicts != 2 || h.penalty() != "2" {
		t.Errorf("got %d events, %d verdicts, penalty %s; want 2", events, verdicts, h.penalty())
	}
}

func TestConsume_ConcurrentlyRetriedReplayIsCountedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.postConsume(m, "tenant-1", "Idempotency-Key", "first")
	h.runConcurrently(20, func(int) {
		if a := h.postConsume(m, "tenant-2", "Idempotency-Key", "second"); !a.hasStatus(409, "HANDOFF_REPLAYED") {
			t.Errorf("got %s; want 409 HANDOFF_REPLAYED", a.Text)
		}
	})
	if events, verdicts := h.countReports(); events != 1 || verdicts != 1 || h.penalty() != "1" {
		t.Errorf("got %d events, %d verdicts, penalty %s; want 1", events, verdicts, h.penalty())
	}
}

// The relay publishes the events of a session in order of id.
func TestConsume_ReplayEventSortsAfterFirstUse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.Advance(5 * time.Second)
	h.postConsume(m, "tenant-1", "Idempotency-Key", "first")
	consumedAt := h.Now()
	h.Advance(time.Second)
	h.postConsume(m, "tenant-2", "Idempotency-Key", "second")
	eventID := queryValue[string](h, `SELECT id::text FROM bff_consumer.outbox WHERE topic = $1`, botSuspectedSubject)
	if at := id.Time(eventID); at.Before(consumedAt) {
		t.Errorf("got event id of %s; want at least %s", at, consumedAt)
	}
}
