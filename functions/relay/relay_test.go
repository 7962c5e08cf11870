package relay

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
)

func TestRelayRun_PublishesCommittedEventsWithAttributes(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "llc")...)
	report := h.runOnce(h.newRelay())
	if want := (Report{Published: 3, Attempts: 3, Requests: 2}); report != want {
		t.Errorf("%+v, want %+v", report, want)
	}
	h.expectReceived(session, ids)
	for _, a := range h.broker.Messages() {
		if err := strict.ValidateMessage(a.Topic, a.Data); err != nil {
			t.Error(err)
		}
		var e event.Event
		if err := json.Unmarshal(a.Data, &e); err != nil {
			t.Fatal(err)
		}
		if !e.PublishedAt.Equal(h.now()) || e.ID != a.ID || e.Subject != a.Topic || e.SessionID != session {
			t.Errorf("%s", a.Data)
		}
		want := map[string]string{ // the ordering key is the message's own
			"eventId": e.ID, "subject": e.Subject, "schemaUri": e.SchemaURI, "retentionClass": string(e.RetentionClass),
		}
		if e.Traceparent != "" {
			want["traceparent"] = e.Traceparent
		}
		if !maps.Equal(a.Attributes, want) || a.OrderingKey != session {
			t.Errorf("attributes %v, key %s", a.Attributes, a.OrderingKey)
		}
	}
	if again := h.runOnce(h.newRelay()); again != (Report{}) {
		t.Errorf("then %+v", again)
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE published_at = $1 AND attempts = 0`, h.now()); n != 3 {
		t.Errorf("%d rows are marked as published", n)
	}
}

func TestRelayRun_PublishesNewRowsUntilRunEnds(t *testing.T) {
	h := newHarness(t)
	stop := h.startRun(h.newRelay(func(e *environment) { e.Run = 20 * time.Second }))
	for i := range 5 {
		h.addEvents(newEvents(newSession(), "l")...)
		h.awaitMessages(i + 1) // while the same run goes on
	}
	if report := stop(); report.Published != 5 {
		t.Errorf("%+v", report)
	}
	short := h.newRelay(func(e *environment) { e.Run = time.Millisecond })
	if _, err := short.Run(t.Context(), Options{}); err != nil {
		t.Error(err)
	}
}

func TestRelayRun_ConcurrentRelaysKeepOrderAndShareWork(t *testing.T) {
	h := newHarness(t)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string][]string{}
	total := 0
	reaction := rand.New(rand.NewPCG(3, 4))
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior { // one at a time
		switch n := reaction.IntN(100); {
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
			t.Errorf("one of them did nothing: %+v", report)
		}
	}
	for h.countPending() > 0 { // those whose answer was lost last
		published += h.runOnce(h.newRelay()).Published
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, lost := h.countDuplicates(); all != lost || published != int64(total) {
		t.Errorf("%d duplicates, %d because of lost answers; %d published, want %d", all, lost, published, total)
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0`); n != 0 {
		t.Errorf("the outages were charged to %d rows", n)
	}
}

func TestRelayRun_BatchesConsecutiveRowsOfOneTopic(t *testing.T) {
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
	if !slices.Equal(sizes, []int{3, 2, 5}) {
		t.Errorf("requests of %v messages", sizes)
	}
}

func TestRelayRun_PublishesEventsWithoutSession(t *testing.T) {
	h := newHarness(t)
	a, b := newEvents("", "lclc"), newEvents("", "l")
	h.addEvents(a...)
	row := h.insertRow(localeTopic, `"nonsense"`, `{"eventId":"x"}`)
	h.addEvents(b...)
	report := h.runOnce(h.newRelay())
	if report.Published != 5 || report.Rejected != 1 || report.Requests != 2 {
		t.Errorf("%+v", report)
	}
	for _, a := range h.broker.Messages() {
		if _, has := a.Attributes["orderingKey"]; has || a.OrderingKey != "" {
			t.Errorf("%v", a)
		}
	}
	h.addEvents(newEvents("", "l")...) // nor does it hold back the others later
	if report := h.runOnce(h.newRelay()); report.Published != 1 || report.Rejected != 0 {
		t.Errorf("%+v", report)
	}
	if due := queryValue[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, row); !due.After(h.now()) {
		t.Errorf("due %s", due)
	}
}

func TestRelayRun_DrainsShardInSeveralBatches(t *testing.T) {
	h := newHarness(t)
	want := map[string][]string{}
	lane := newSession()[29:]
	for len(want) < 3*batchSize*maxBatchesPerLease {
		session := newSession()[:29] + lane
		want[session] = h.addEvents(newEvents(session, "lc")...)
	}
	long := newSession()[:29] + lane
	for range 5 {
		want[long] = append(want[long], h.addEvents(newEvents(long, "lllllllllllllllc")...)...)
	}
	report := h.runOnce(h.newRelay())
	if report.Depth != 0 || report.Rejected+report.Outages != 0 {
		t.Errorf("%+v", report)
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("%d duplicates", all)
	}
}

func TestRelayRun_DryRunOnlyCounts(t *testing.T) {
	h := newHarness(t)
	h.addEvents(newEvents(newSession(), "lc")...)
	h.exec(`UPDATE bff_consumer.outbox SET created_at = $1`, h.now().Add(-400*time.Second))
	report, err := h.newRelay().Run(t.Context(), Options{DryRun: true})
	if want := (Report{Depth: 2, OldestAgeSeconds: 400, DryRun: true}); err != nil || report != want {
		t.Errorf("%+v %v, want %+v", report, err, want)
	}
	if len(h.broker.Messages()) != 0 {
		t.Error("it sent something")
	}
}

func TestRelayRun_FindsEveryShard(t *testing.T) {
	h := newHarness(t)
	base := newSession()
	n := 0
	for _, last := range "0123456789ABCDEFGHJKMNPQRSTVWXYZ" {
		n += len(h.addEvents(newEvents(fmt.Sprintf("%s%c", base[:29], last), "l")...))
	}
	n += len(h.addEvents(newEvents("", "l")...))
	h.insertRow(localeTopic, `{}`, `{"orderingKey":"not-one-of-ours-é"}`) // is found as well
	report := h.runOnce(h.newRelay())
	if report.Published != int64(n) || report.Rejected != 1 {
		t.Errorf("%+v", report)
	}
}
