package relay

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// pushToBuffer appends values to the Redis buffer.
func (h *harness) pushToBuffer(values ...string) {
	h.T.Helper()
	for _, v := range values {
		if err := h.RDB.LPush(h.T.Context(), outbox.BufferKey(keys), v).Err(); err != nil {
			h.T.Fatal(err)
		}
	}
}

// encodeRows returns the values of events in the Redis buffer.
func encodeRows(t *testing.T, all ...event.Event) (values []string) {
	t.Helper()
	for _, e := range all {
		row, err := outbox.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, encodeRow(t, row))
	}
	return values
}

func encodeRow(t *testing.T, row outbox.Row) string {
	t.Helper()
	value, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// repeatFunc concatenates the results of n calls of text.
func repeatFunc(n int, text func() string) (s string) {
	for range n {
		s += text()
	}
	return s
}

func TestRelayBuffer_DrainsAndPublishesBufferedRows(t *testing.T) {
	h := newHarness(t)
	log := captureLogs(t)
	session, refused := newSession(), newSession()
	var all []event.Event
	for range 60 {
		all = append(all, newEvents(session, "lclc")...)
	}
	h.setConsent(refused, false, false)
	h.addEvents(all[7])                  // committed, although the writer saw a failure and buffered it
	tooLarge := encodeRow(t, outbox.Row{ // Postgres cannot index a session id of this length
		ID: id.New(id.Event, time.Now()), Topic: localeTopic, Payload: []byte(`{}`), RetentionClass: "operational",
		Headers: []byte(`{"orderingKey":"` + repeatFunc(1000, rand.Text) + `"}`),
	})
	values := slices.Concat(encodeRows(t, all[:100]...), []string{
		tooLarge,
		`{`, `null`, `{"id":"evt_1"}`, strings.TrimSuffix(encodeRows(t, newEvents(session, "l")...)[0], `"operational"}`) + `"canary"}`,
	}, encodeRows(t, newEvents(refused, "l")...), encodeRows(t, all[100:]...))
	h.pushToBuffer(values...)
	report := h.runOnce(h.newRelay())
	if report.DrainRejected != 5 || report.Drained != int64(len(values)-5) || report.Published != int64(len(all)) || report.Depth != 0 {
		t.Errorf("got %+v, want 5 rejected, %d drained, %d published and no pending rows", report, len(values)-5, len(all))
	}
	h.expectReceived(session, eventIDs(all))
	h.expectReceived(refused, nil)
	if n := h.RDB.LLen(t.Context(), outbox.BufferKey(keys)).Val(); n != 0 {
		t.Errorf("got %d rows left in the buffer, want none", n)
	}
	rejected := h.RDB.LRange(t.Context(), outbox.BufferRejectedKey(keys), 0, -1).Val()
	if len(rejected) != 5 || h.RDB.PTTL(t.Context(), outbox.BufferRejectedKey(keys)).Val() <= 0 {
		t.Errorf("set aside: got %q, want 5 values with a TTL", rejected)
	}
	if text := log.String(); !strings.Contains(text, "set aside") || strings.Contains(text, "canary") {
		t.Errorf("got the log %s, want a warning without content of rows", text)
	}
}

func TestRelayBuffer_ConcurrentRelaysDrainOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var all []event.Event
	for range 150 {
		all = append(all, newEvents(newSession(), "lc")...)
	}
	h.pushToBuffer(encodeRows(t, all...)...)
	var both sync.WaitGroup
	var reports [2]Report
	relays := []*Relay{h.newRelay(), h.newRelay()}
	for i, r := range relays {
		both.Go(func() { reports[i] = h.runOnce(r) })
	}
	both.Wait()
	h.runOnce(relays[0])
	if n := reports[0].Drained + reports[1].Drained; n != int64(len(all)) {
		t.Errorf("got %d drained rows, want %d", n, len(all))
	}
	if buffered, pending := h.RDB.LLen(t.Context(), outbox.BufferKey(keys)).Val(), h.PendingEvents(); buffered != 0 || pending != 0 {
		t.Errorf("got %d buffered and %d pending rows, want none", buffered, pending)
	}
	if dup, _ := h.countDuplicates(); dup != 0 || len(h.broker.Messages()) != len(all) {
		t.Errorf("got %d messages, %d of them duplicates, want %d without duplicates", len(h.broker.Messages()), dup, len(all))
	}
}

func TestRelayBuffer_DrainsRowsBufferedDuringRun(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	stop := h.startRun(h.newRelay())
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.awaitMessages(1)
	later := newEvents(session, "c")
	h.pushToBuffer(encodeRows(t, later...)...)
	h.awaitMessages(2)
	h.expectReceived(session, append(ids, later[0].ID))
	stop()
}

func TestRelayBuffer_PublishesTableRowsWithoutRedis(t *testing.T) {
	h := newHarness(t)
	log := captureLogs(t)
	h.Redis.Stop()
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if !strings.Contains(log.String(), "the buffer cannot be drained") {
		t.Errorf("got the log %s, want a warning that the buffer cannot be drained", log)
	}
}
