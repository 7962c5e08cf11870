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

func TestWhatIsCommittedIsToldWithAllItsParts(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, "llc")...)
	report := h.once(h.relay())
	if want := (Report{Published: 3, Attempts: 3, Requests: 2}); report != want {
		t.Errorf("%+v, want %+v", report, want)
	}
	h.expect(session, ids)
	for _, a := range h.broker.Arrivals() {
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
	if again := h.once(h.relay()); again != (Report{}) {
		t.Errorf("then %+v", again)
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE published_at = $1 AND attempts = 0`, h.now()); n != 3 {
		t.Errorf("%d rows are marked as published", n)
	}
}

func TestAWaitingRelayWakesAtOnceAndEndsWithItsMinute(t *testing.T) {
	h := newHouse(t)
	stop := h.begin(h.relay(func(e *environment) { e.Run = 20 * time.Second }))
	for i := range 5 {
		h.add(events(newSession(), "l")...)
		h.await(i + 1) // while the same run goes on
	}
	if report := stop(); report.Published != 5 {
		t.Errorf("%+v", report)
	}
	short := h.relay(func(e *environment) { e.Run = time.Millisecond })
	if _, err := short.Run(t.Context(), Orders{}); err != nil {
		t.Error(err)
	}
}

func TestTwoRelaysKeepTheOrderAndShareTheWork(t *testing.T) {
	h := newHouse(t)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string][]string{}
	total := 0
	reaction := rand.New(rand.NewPCG(3, 4))
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction { // one at a time
		switch n := reaction.IntN(100); {
		case n < 20:
			return pubsubtest.Reaction{Refuse: codes.Unavailable}
		case n < 25:
			return pubsubtest.Reaction{Lose: true}
		}
		return pubsubtest.Reaction{}
	})
	stops := []func() Report{h.begin(h.relay()), h.begin(h.relay())}
	sessions := make([]string, 60)
	for i := range sessions {
		sessions[i] = newSession()
	}
	for range 400 {
		session := sessions[random.IntN(len(sessions))]
		kinds := []string{"l", "lc", "cc", "lclcl"}[random.IntN(4)]
		ids := h.add(events(session, kinds)...)
		want[session] = append(want[session], ids...)
		total += len(ids)
	}
	h.await(total)
	var published int64
	for _, stop := range stops {
		report := stop()
		published += report.Published
		if report.Published == 0 {
			t.Errorf("one of them did nothing: %+v", report)
		}
	}
	for h.waiting() > 0 { // those whose answer was lost last
		published += h.once(h.relay()).Published
	}
	for session, ids := range want {
		h.expect(session, ids)
	}
	if all, lost := h.duplicates(); all != lost || published != int64(total) {
		t.Errorf("%d duplicates, %d because of lost answers; %d published, want %d", all, lost, published, total)
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0`); n != 0 {
		t.Errorf("the outages were charged to %d rows", n)
	}
}

func TestARunOfManyGoesInOneRequestPerTopic(t *testing.T) {
	h := newHouse(t)
	var mu sync.Mutex
	var sizes []int
	h.broker.React(func(r pubsubtest.Request) pubsubtest.Reaction {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(r.Messages))
		return pubsubtest.Reaction{}
	})
	session := newSession()
	ids := h.add(events(session, "lllcclllll")...)
	h.once(h.relay())
	h.expect(session, ids)
	if !slices.Equal(sizes, []int{3, 2, 5}) {
		t.Errorf("requests of %v messages", sizes)
	}
}

func TestWhatBelongsToNoSessionIsToldToo(t *testing.T) {
	h := newHouse(t)
	a, b := events("", "lclc"), events("", "l")
	h.add(a...)
	row := h.insert(locales, `"nonsense"`, `{"eventId":"x"}`)
	h.add(b...)
	report := h.once(h.relay())
	if report.Published != 5 || report.Refused != 1 || report.Requests != 2 {
		t.Errorf("%+v", report)
	}
	for _, a := range h.broker.Arrivals() {
		if _, has := a.Attributes["orderingKey"]; has || a.OrderingKey != "" {
			t.Errorf("%v", a)
		}
	}
	h.add(events("", "l")...) // nor does it hold back the others later
	if report := h.once(h.relay()); report.Published != 1 || report.Refused != 0 {
		t.Errorf("%+v", report)
	}
	if due := read[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, row); !due.After(h.now()) {
		t.Errorf("due %s", due)
	}
}

func TestSeveralBatchesOfOneLane(t *testing.T) {
	h := newHouse(t)
	want := map[string][]string{}
	lane := newSession()[29:]
	for len(want) < 3*rowsAtOnce*batchesAtOnce {
		session := newSession()[:29] + lane
		want[session] = h.add(events(session, "lc")...)
	}
	long := newSession()[:29] + lane
	for range 5 {
		want[long] = append(want[long], h.add(events(long, "lllllllllllllllc")...)...)
	}
	report := h.once(h.relay())
	if report.Depth != 0 || report.Refused+report.Outages != 0 {
		t.Errorf("%+v", report)
	}
	for session, ids := range want {
		h.expect(session, ids)
	}
	if all, _ := h.duplicates(); all != 0 {
		t.Errorf("%d duplicates", all)
	}
}

func TestADryRunOnlyCounts(t *testing.T) {
	h := newHouse(t)
	h.add(events(newSession(), "lc")...)
	h.exec(`UPDATE bff_consumer.outbox SET created_at = $1`, h.now().Add(-400*time.Second))
	report, err := h.relay().Run(t.Context(), Orders{DryRun: true})
	if want := (Report{Depth: 2, OldestAgeSeconds: 400, DryRun: true}); err != nil || report != want {
		t.Errorf("%+v %v, want %+v", report, err, want)
	}
	if len(h.broker.Arrivals()) != 0 {
		t.Error("it sent something")
	}
}

func TestEveryLaneIsFound(t *testing.T) {
	h := newHouse(t)
	base := newSession()
	n := 0
	for _, last := range "0123456789ABCDEFGHJKMNPQRSTVWXYZ" {
		n += len(h.add(events(fmt.Sprintf("%s%c", base[:29], last), "l")...))
	}
	n += len(h.add(events("", "l")...))
	h.insert(locales, `{}`, `{"orderingKey":"not-one-of-ours-é"}`) // is found as well
	report := h.once(h.relay())
	if report.Published != int64(n) || report.Refused != 1 {
		t.Errorf("%+v", report)
	}
}
