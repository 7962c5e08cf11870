package relay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
)

func TestRelayRun_PublishesCommittedEventsWithAttributes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "llc")...)
	expectReport(t, h.runOnce(h.newRelay()), Report{Published: 3, Attempts: 3, Requests: 2})
	h.expectReceived(session, ids)
	for _, m := range h.broker.Messages() {
		if err := strict.ValidateMessage(m.Topic, m.Data); err != nil {
			t.Error(err)
		}
		var e event.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		if !e.PublishedAt.Equal(h.Now()) || e.ID != m.ID || e.Subject != m.Topic || e.SessionID != session {
			t.Errorf("got %s, want event %s of %s, session %s, published at %s", m.Data, m.ID, m.Topic, session, h.Now())
		}
		want := map[string]string{ // the ordering key is no attribute
			"eventId": e.ID, "subject": e.Subject, "schemaUri": e.SchemaURI, "retentionClass": string(e.RetentionClass),
		}
		if e.Traceparent != "" {
			want["traceparent"] = e.Traceparent
		}
		if diff := cmp.Diff(want, m.Attributes); diff != "" || m.OrderingKey != session {
			t.Errorf("ordering key: got %s, want %s; attributes (-want +got):\n%s", m.OrderingKey, session, diff)
		}
	}
	expectReport(t, h.runOnce(h.newRelay()), Report{})
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE published_at = $1 AND attempts = 0`, h.Now()); n != 3 {
		t.Errorf("got %d rows marked as published, want 3", n)
	}
}

func TestRelayRun_PublishesNewRowsUntilRunEnds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	stop := h.startRun(h.newRelay(func(e *environment) { e.Run = 20 * time.Second }))
	for i := range 5 {
		h.addEvents(newEvents(newSession(), "l")...)
		h.awaitMessages(i + 1) // during the same run
	}
	if report := stop(); report.Published != 5 {
		t.Errorf("got %d published rows, want 5", report.Published)
	}
	short := h.newRelay(func(e *environment) { e.Run = time.Millisecond })
	if _, err := short.Run(t.Context(), Options{}); err != nil {
		t.Error(err)
	}
}

func TestRelayRun_ConcurrentRelaysKeepOrderAndShareWork(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string][]string{}
	total := 0
	faults := rand.New(rand.NewPCG(3, 4))
	// the broker calls it for one request at a time
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior {
		switch n := faults.IntN(100); {
		case n < 20:
			return pubsubtest.Behavior{RejectCode: codes.Unavailable}
		case n < 25:
			return pubsubtest.Behavior{LoseResponse: true}
		}
		return pubsubtest.Behavior{}
	})
	stops := []func() Report{h.startRun(h.newRelay()), h.startRun(h.newRelay())}
	sessions := make([]string, 60)
	for i := range sessions {
		sessions[i] = newSession()
	}
	for range 400 {
		session := sessions[random.IntN(len(sessions))]
		kinds := []string{"l", "lc", "cc", "lclcl"}[random.IntN(4)]
		ids := h.addEvents(newEvents(session, kinds)...)
		want[session] = append(want[session], ids...)
		total += len(ids)
	}
	h.awaitMessages(total)
	var published int64
	for _, stop := range stops {
		report := stop()
		published += report.Published
		if report.Published == 0 {
			t.Errorf("got a relay without published rows: %+v", report)
		}
	}
	for h.PendingEvents() > 0 { // rows whose last response was lost
		published += h.runOnce(h.newRelay()).Published
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, lost := h.countDuplicates(); all != lost || published != int64(total) {
		t.Errorf("got %d duplicates, %d after lost responses, and %d published rows; want equal numbers and %d", all, lost, published, total)
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0`); n != 0 {
		t.Errorf("got %d rows charged for outages, want none", n)
	}
}

func TestRelayRun_BatchesConsecutiveRowsOfOneTopic(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var mu sync.Mutex
	var sizes []int
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(r.Messages))
		return pubsubtest.Behavior{}
	})
	session := newSession()
	ids := h.addEvents(newEvents(session, "lllcclllll")...)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if diff := cmp.Diff([]int{3, 2, 5}, sizes); diff != "" {
		t.Errorf("messages per request (-want +got):\n%s", diff)
	}
}

func TestRelayRun_PublishesEventsWithoutSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	valid := newEvents("", "lclcl") // with smaller ids than the invalid row
	row := h.insertRow(localeTopic, `"invalid"`, `{"eventId":"x"}`)
	h.addEvents(valid...)
	report := h.runOnce(h.newRelay())
	if report.Published != 5 || report.Rejected != 1 || report.Requests != 2 {
		t.Errorf("got %+v, want 5 published and 1 rejected row in 2 requests", report)
	}
	for _, m := range h.broker.Messages() {
		if _, ok := m.Attributes["orderingKey"]; ok || m.OrderingKey != "" {
			t.Errorf("got %+v, want no ordering key", m)
		}
	}
	h.addEvents(newEvents("", "l")...) // the rejected row does not hold it back
	if report := h.runOnce(h.newRelay()); report.Published != 1 || report.Rejected != 0 {
		t.Errorf("got %+v, want 1 published and no rejected row", report)
	}
	if due := queryValue[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, row); !due.After(h.Now()) {
		t.Errorf("due_at: got %s, want after %s", due, h.Now())
	}
}

func TestRelayRun_DrainsShardInSeveralBatches(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	want := map[string][]string{}
	shardOf := newSession()
	for len(want) < 3*batchSize*maxBatchesPerLease {
		session := newSessionInShard(shardOf)
		want[session] = h.addEvents(newEvents(session, "lc")...)
	}
	long := newSessionInShard(shardOf)
	for range 5 {
		want[long] = append(want[long], h.addEvents(newEvents(long, "lllllllllllllllc")...)...)
	}
	report := h.runOnce(h.newRelay())
	if report.Depth != 0 || report.Rejected+report.Outages != 0 {
		t.Errorf("got %+v, want no pending or rejected row and no outage", report)
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("got %d duplicates, want none", all)
	}
}

func TestRelayRun_DryRunOnlyCounts(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.addEvents(newEvents(newSession(), "lc")...)
	h.Exec(`UPDATE bff_consumer.outbox SET created_at = $1`, h.Now().Add(-400*time.Second))
	report, err := h.newRelay().Run(t.Context(), Options{DryRun: true})
	if err != nil {
		t.Error(err)
	}
	expectReport(t, report, Report{Depth: 2, OldestAgeSeconds: 400, DryRun: true})
	if n := h.broker.Requests(); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

func TestRelayRun_FindsEveryShard(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	base := newSession()
	n := 0
	for _, last := range "0123456789ABCDEFGHJKMNPQRSTVWXYZ" {
		n += len(h.addEvents(newEvents(fmt.Sprintf("%s%c", base[:29], last), "l")...))
	}
	n += len(h.addEvents(newEvents("", "l")...))
	// the id of no session, with a last character of two bytes
	h.insertRow(localeTopic, `{}`, `{"orderingKey":"not-one-of-ours-é"}`)
	report := h.runOnce(h.newRelay())
	if report.Published != int64(n) || report.Rejected != 1 {
		t.Errorf("got %+v, want %d published and 1 rejected row", report, n)
	}
}
