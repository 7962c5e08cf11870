package relay

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// spill puts values where rows wait for Postgres.
func spill(t *testing.T, h *house, values ...string) {
	t.Helper()
	rdb := redistest.New(t)
	for _, v := range values {
		if err := rdb.LPush(t.Context(), outbox.SpillKey(keys), v).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func rowsOf(t *testing.T, all ...event.Event) (values []string) {
	t.Helper()
	for _, e := range all {
		row, err := outbox.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, text(row))
	}
	return values
}

// many is what make makes, n times.
func many(n int, make func() string) (s string) {
	for range n {
		s += make()
	}
	return s
}

func TestWhatWaitedInRedisIsMovedAndTold(t *testing.T) {
	h := newHouse(t).withRedis()
	said := logged(t)
	mine, refused := newSession(), newSession()
	var all []event.Event
	for range 60 {
		all = append(all, events(mine, "lclc")...)
	}
	h.choose(refused, false, false)
	h.add(all[7])              // committed, and its writer did not hear of it
	beyond := text(outbox.Row{ // an index of ours has no room for such a session
		ID: id.New(id.Event, time.Now()), Topic: locales, Payload: []byte(`{}`), RetentionClass: "operational",
		Headers: []byte(`{"orderingKey":"` + many(1000, rand.Text) + `"}`),
	})
	values := slices.Concat(rowsOf(t, all[:100]...), []string{
		beyond,
		`{`, `null`, `{"id":"evt_1"}`, strings.TrimSuffix(rowsOf(t, events(mine, "l")...)[0], `"operational"}`) + `"canary"}`,
	}, rowsOf(t, events(refused, "l")...), rowsOf(t, all[100:]...))
	spill(t, h, values...)
	r := h.relay()
	report := h.once(r)
	if report.SpillRefused != 5 || report.Spilled != int64(len(values)-5) || report.Published != int64(len(all)) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	h.expect(mine, ids)
	h.expect(refused, nil)
	if n := r.rdb.LLen(t.Context(), outbox.SpillKey(keys)).Val(); n != 0 {
		t.Errorf("%d rows are left in Redis", n)
	}
	aside := r.rdb.LRange(t.Context(), outbox.SpillRefusedKey(keys), 0, -1).Val()
	if len(aside) != 5 || r.rdb.PTTL(t.Context(), outbox.SpillRefusedKey(keys)).Val() <= 0 {
		t.Errorf("kept aside: %v", aside)
	}
	if log := said.String(); !strings.Contains(log, "kept aside") || strings.Contains(log, "canary") {
		t.Error(log)
	}
}

func TestTwoRelaysMoveTheSpillOnce(t *testing.T) {
	h := newHouse(t).withRedis()
	var all []event.Event
	for range 150 {
		all = append(all, events(newSession(), "lc")...)
	}
	spill(t, h, rowsOf(t, all...)...)
	var both sync.WaitGroup
	var reports [2]Report
	relays := []*Relay{h.relay(), h.relay()}
	for i, r := range relays {
		both.Go(func() { reports[i] = h.once(r) })
	}
	both.Wait()
	h.once(relays[0])
	if n := reports[0].Spilled + reports[1].Spilled; n != int64(len(all)) {
		t.Errorf("%d moved, want %d", n, len(all))
	}
	if n := relays[0].rdb.Exists(t.Context(), outbox.SpillKey(keys)).Val(); n != 0 || h.waiting() != 0 {
		t.Errorf("%d list, %d rows wait", n, h.waiting())
	}
	if dup, _ := h.duplicates(); dup != 0 || len(h.broker.Arrivals()) != len(all) {
		t.Errorf("%d arrived, %d of them again", len(h.broker.Arrivals()), dup)
	}
}

func TestARunMovesWhatIsSpilledMeanwhile(t *testing.T) {
	h := newHouse(t).withRedis()
	spill(t, h)
	stop := h.begin(h.relay())
	session := newSession()
	ids := h.add(events(session, "l")...)
	h.await(1)
	later := events(session, "c")
	spill(t, h, rowsOf(t, later...)...)
	h.await(2)
	h.expect(session, append(ids, later[0].ID))
	stop()
}

func TestWithoutRedisTheRestIsTold(t *testing.T) {
	h := newHouse(t)
	said := logged(t)
	session := newSession()
	ids := h.add(events(session, "l")...)
	h.once(h.relay())
	h.expect(session, ids)
	if !strings.Contains(said.String(), "the spill waits") {
		t.Errorf("%s", said)
	}
}
