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
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// pushToBuffer puts values where rows wait for Postgres.
func pushToBuffer(t *testing.T, h *harness, values ...string) {
	t.Helper()
	rdb := redistest.New(t)
	for _, v := range values {
		if err := rdb.LPush(t.Context(), outbox.BufferKey(keys), v).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func encodeRows(t *testing.T, all ...event.Event) (values []string) {
	t.Helper()
	for _, e := range all {
		row, err := outbox.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, toJSON(row))
	}
	return values
}

// repeatFunc is what make makes, n times.
func repeatFunc(n int, make func() string) (s string) {
	for range n {
		s += make()
	}
	return s
}

func TestRelayBuffer_DrainsAndPublishesBufferedRows(t *testing.T) {
	h := newHarness(t).withRedis()
	said := captureLogs(t)
	mine, refused := newSession(), newSession()
	var all []event.Event
	for range 60 {
		all = append(all, newEvents(mine, "lclc")...)
	}
	h.setConsent(refused, false, false)
	h.addEvents(all[7])          // committed, and its writer did not hear of it
	beyond := toJSON(outbox.Row{ // an index of ours has no room for such a session
		ID: id.New(id.Event, time.Now()), Topic: localeTopic, Payload: []byte(`{}`), RetentionClass: "operational",
		Headers: []byte(`{"orderingKey":"` + repeatFunc(1000, rand.Text) + `"}`),
	})
	values := slices.Concat(encodeRows(t, all[:100]...), []string{
		beyond,
		`{`, `null`, `{"id":"evt_1"}`, strings.TrimSuffix(encodeRows(t, newEvents(mine, "l")...)[0], `"operational"}`) + `"canary"}`,
	}, encodeRows(t, newEvents(refused, "l")...), encodeRows(t, all[100:]...))
	pushToBuffer(t, h, values...)
	r := h.newRelay()
	report := h.runOnce(r)
	if report.DrainRejected != 5 || report.Drained != int64(len(values)-5) || report.Published != int64(len(all)) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	h.expectReceived(mine, ids)
	h.expectReceived(refused, nil)
	if n := r.rdb.LLen(t.Context(), outbox.BufferKey(keys)).Val(); n != 0 {
		t.Errorf("%d rows are left in Redis", n)
	}
	aside := r.rdb.LRange(t.Context(), outbox.BufferRejectedKey(keys), 0, -1).Val()
	if len(aside) != 5 || r.rdb.PTTL(t.Context(), outbox.BufferRejectedKey(keys)).Val() <= 0 {
		t.Errorf("kept aside: %v", aside)
	}
	if log := said.String(); !strings.Contains(log, "set aside") || strings.Contains(log, "canary") {
		t.Error(log)
	}
}

func TestRelayBuffer_ConcurrentRelaysDrainOnce(t *testing.T) {
	h := newHarness(t).withRedis()
	var all []event.Event
	for range 150 {
		all = append(all, newEvents(newSession(), "lc")...)
	}
	pushToBuffer(t, h, encodeRows(t, all...)...)
	var both sync.WaitGroup
	var reports [2]Report
	relays := []*Relay{h.newRelay(), h.newRelay()}
	for i, r := range relays {
		both.Go(func() { reports[i] = h.runOnce(r) })
	}
	both.Wait()
	h.runOnce(relays[0])
	if n := reports[0].Drained + reports[1].Drained; n != int64(len(all)) {
		t.Errorf("%d moved, want %d", n, len(all))
	}
	if n := relays[0].rdb.Exists(t.Context(), outbox.BufferKey(keys)).Val(); n != 0 || h.countPending() != 0 {
		t.Errorf("%d list, %d rows wait", n, h.countPending())
	}
	if dup, _ := h.countDuplicates(); dup != 0 || len(h.broker.Messages()) != len(all) {
		t.Errorf("%d arrived, %d of them again", len(h.broker.Messages()), dup)
	}
}

func TestRelayBuffer_DrainsRowsBufferedDuringRun(t *testing.T) {
	h := newHarness(t).withRedis()
	pushToBuffer(t, h)
	stop := h.startRun(h.newRelay())
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.awaitMessages(1)
	later := newEvents(session, "c")
	pushToBuffer(t, h, encodeRows(t, later...)...)
	h.awaitMessages(2)
	h.expectReceived(session, append(ids, later[0].ID))
	stop()
}

func TestRelayBuffer_PublishesTableRowsWithoutRedis(t *testing.T) {
	h := newHarness(t)
	said := captureLogs(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if !strings.Contains(said.String(), "the buffer cannot be drained") {
		t.Errorf("%s", said)
	}
}
