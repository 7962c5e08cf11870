package relay

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// refusing refuses every request with one of these messages in it.
func refusing(code codes.Code, ids ...string) func(pubsubtest.Request) pubsubtest.Reaction {
	return func(r pubsubtest.Request) pubsubtest.Reaction {
		for _, m := range r.Messages {
			if slices.Contains(ids, m.Attributes["eventId"]) {
				return pubsubtest.Reaction{Refuse: code}
			}
		}
		return pubsubtest.Reaction{}
	}
}

func TestARefusedRowIsParkedAfterTwentyAttemptsAndHoldsUpItsSessionAlone(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange} {
		t.Run(code.String(), func(t *testing.T) {
			h := newHouse(t)
			logged(t)
			r := h.relay()
			mine, other := newSession(), newSession()
			ids := h.add(events(mine, "llll")...)
			bad := ids[2]
			h.broker.React(refusing(code, bad))
			var last time.Duration
			for attempt := 1; attempt <= parkAfter; attempt++ {
				others := h.add(events(other, "l")...)
				report := h.once(r)
				if report.Refused != 1 || report.Outages != 0 {
					t.Fatalf("attempt %d: %+v", attempt, report)
				}
				if attempt == 1 {
					if report.Requests != 5 { // together; one, two, three by themselves; the other session
						t.Errorf("%+v", report)
					}
					h.expect(mine, ids[:2])
				}
				if !slices.Contains(h.arrived(other), others[0]) {
					t.Fatalf("attempt %d holds up another session", attempt)
				}
				if attempt == parkAfter {
					break
				}
				h.add(events(mine, "l")...) // waits with the others
				if report := h.once(r); report.Attempts != 0 {
					t.Fatalf("after attempt %d, before it is due: %+v", attempt, report)
				}
				wait := read[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, bad).Sub(h.now())
				want := min(time.Second<<(attempt-1), mostBackoff)
				if wait < want*8/10-time.Millisecond || wait > want*12/10 {
					t.Errorf("after attempt %d it waits %s", attempt, wait)
				}
				last = wait
				h.advance(wait)
			}
			if last < 8*time.Minute {
				t.Errorf("the last pause was %s", last)
			}
			if report := h.once(r); report.Parked != 1 || report.Depth != 0 {
				t.Errorf("after it was parked: %+v", report)
			}
			if got := h.arrived(mine); len(got) != 3+parkAfter-1 || slices.Contains(got, bad) || !slices.IsSorted(got) {
				t.Errorf("%d arrived: %v", len(got), got)
			}
			why := read[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1 AND parked_at IS NOT NULL AND attempts = 20`, bad)
			if why != code.String()+": as it was told" {
				t.Error(why)
			}
		})
	}
}

func TestAPayloadThatIsNoMessageBreaksNothingElse(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	first := h.add(events(session, "ll")...)
	headers := `{"eventId":"x","orderingKey":"` + session + `"}`
	bad := h.insert(locales, `["a canary"]`, headers)
	later := h.add(events(session, "l")...)
	alone := map[string]string{}
	for _, c := range [][2]string{
		{`{"envelope":{},"payload":{}}`, `{"orderingKey":"` + newSession() + `"}`},
		{`null`, `"text"`}, {`7`, `{"orderingKey":7}`}, {`{}`, `null`}, {`{}`, `[]`},
	} {
		alone[h.insert(locales, c[0], c[1])] = c[0]
	}
	neighbour := newSession()
	fine := h.add(events(neighbour, "l")...)
	r := h.relay()
	report := h.once(r)
	if report.Published != 3 || report.Refused != int64(1+len(alone)) {
		t.Errorf("%+v", report)
	}
	h.expect(session, first)
	h.expect(neighbour, fine)
	why := read[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1`, bad)
	if !strings.Contains(why, "no JSON object") || strings.Contains(why, "canary") {
		t.Error(why)
	}
	for range parkAfter - 1 {
		h.advance(12 * time.Minute)
		h.once(r)
	}
	if report := h.once(r); report.Parked != int64(1+len(alone)) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expect(session, append(first, later...))
}

func TestHeadersThatAreNoAttributesAreRefused(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, "l")...)
	h.exec(`UPDATE bff_consumer.outbox SET headers = headers || '{"number": 7}'`)
	if report := h.once(h.relay()); report.Refused != 1 || report.Requests != 0 {
		t.Errorf("%+v", report)
	}
	h.exec(`UPDATE bff_consumer.outbox SET headers = headers - 'number', due_at = NULL`)
	h.once(h.relay())
	h.expect(session, ids)
}

func TestAnOutageCostsNoAttemptsAndEverythingDrainsAfterIt(t *testing.T) {
	for _, code := range []codes.Code{
		codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
		codes.Internal, codes.Aborted, codes.Canceled, codes.Unknown, codes.Unimplemented, codes.DataLoss, codes.AlreadyExists,
	} {
		t.Run(code.String(), func(t *testing.T) {
			h := newHouse(t)
			h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction { return pubsubtest.Reaction{Refuse: code} })
			want := map[string][]string{}
			for range 40 {
				session := newSession()
				want[session] = h.add(events(session, "lc")...)
			}
			r := h.relay()
			for range 3 {
				report := h.once(r)
				if topic, why, _ := strings.Cut(report.LastOutage, ": "); why != code.String() || !slices.Contains(event.Subjects(), topic) {
					t.Errorf("%+v", report)
				}
				if report.Refused != 0 || report.Parked != 0 || report.Published != 0 || report.Depth != 80 {
					t.Fatalf("%+v", report)
				}
				if report.Requests > 40 {
					t.Errorf("%d requests to a broker that is away", report.Requests)
				}
				h.advance(30 * 24 * time.Hour)
			}
			if n := read[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0 OR due_at IS NOT NULL OR last_error IS NOT NULL`); n != 0 {
				t.Errorf("%d rows were charged", n)
			}
			h.broker.React(nil)
			if report := h.once(r); report.Published != 80 || report.Depth != 0 || report.LastOutage != "" {
				t.Errorf("%+v", report)
			}
			for session, ids := range want {
				h.expect(session, ids)
			}
		})
	}
}

func TestABrokerThatComesBackIsNoticedByTheSameRun(t *testing.T) {
	h := newHouse(t)
	h.broker.Stop()
	stop := h.begin(h.relay())
	session := newSession()
	ids := h.add(events(session, "lcl")...)
	for h.relayAsked() == 0 { // by its looks for work
		h.exec(`SELECT 1`)
	}
	again, err := pubsubtest.StartAt(h.broker.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	h.broker = again
	h.await(3)
	h.expect(session, ids)
	stop()
}

// relayAsked is how many statements but ours run, or ran last, on this database.
func (h *house) relayAsked() int {
	return read[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer' AND state IS NOT NULL`)
}

func TestATopicThatIsAwayHoldsUpOnlyWhatComesAfterIt(t *testing.T) {
	h := newHouse(t)
	h.broker.React(func(r pubsubtest.Request) pubsubtest.Reaction {
		if r.Topic == currencies {
			return pubsubtest.Reaction{Refuse: codes.PermissionDenied}
		}
		return pubsubtest.Reaction{}
	})
	lane := newSession()[29:]
	for range 3 * rowsAtOnce { // before the others, in the same lane
		h.add(events(newSession()[:29]+lane, "c")...)
	}
	session := newSession()[:29] + lane
	ids := h.add(events(session, "ll")...)
	report := h.once(h.relay())
	h.expect(session, ids)
	if report.Requests > 60 || report.Depth != 3*rowsAtOnce {
		t.Errorf("%+v", report)
	}
}

func TestALostAnswerIsSentAgainAndKeepsTheOrder(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, "llcl")...)
	h.broker.React(func(r pubsubtest.Request) pubsubtest.Reaction {
		return pubsubtest.Reaction{Lose: r.Number == 1 || r.Number == 3}
	})
	r := h.relay()
	for h.waiting() > 0 {
		h.once(r)
	}
	h.expect(session, ids)
	if all, lost := h.duplicates(); all != 3 || lost != 3 {
		t.Errorf("%d duplicates, %d of them owed to lost answers", all, lost)
	}
}

func TestABrokerThatHangsHoldsUpNobodyElse(t *testing.T) {
	h := newHouse(t)
	stuck, free := newSession(), newSession()
	gate := make(chan struct{})
	h.broker.React(func(r pubsubtest.Request) pubsubtest.Reaction {
		if r.OrderingKey == stuck {
			return pubsubtest.Reaction{Gate: gate}
		}
		return pubsubtest.Reaction{}
	})
	h.add(events(stuck, "l")...)
	stop := h.begin(h.relay())
	for range 3 {
		h.add(events(free, "l")...)
	}
	h.await(3)
	close(gate)
	h.await(4)
	if report := stop(); report.Published != 4 || report.Outages != 0 {
		t.Errorf("%+v", report)
	}
}

func TestARelayWhoseConnectionsAreCutLosesNothing(t *testing.T) {
	h := newHouse(t)
	gate := make(chan struct{})
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction { return pubsubtest.Reaction{Gate: gate} })
	want := map[string][]string{}
	total := 0
	for range 30 {
		session := newSession()
		want[session] = h.add(events(session, "lcl")...)
		total += 3
	}
	stop := h.try(h.relay())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for h.broker.Requests() == 0 && ctx.Err() == nil {
		h.exec(`SELECT 1`)
	}
	// Requests are under way: their rows are sent and will not be marked.
	h.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer'`)
	other := h.relay() // may have the lanes at once
	h.broker.React(nil)
	if report := h.once(other); report.Failures != 0 {
		t.Errorf("the other: %+v", report)
	}
	close(gate)
	report, err := stop()
	if err != nil && report.Published > 0 { // it says so when all that it did was cut
		t.Error(err)
	}
	h.once(other) // a server that is told to end a connection does it a moment later
	if report.Failures == 0 || h.waiting() != 0 {
		t.Errorf("%+v, %d wait", report, h.waiting())
	}
	for session, ids := range want {
		h.expect(session, ids)
	}
	if all, _ := h.duplicates(); all > total {
		t.Errorf("%d duplicates of %d", all, total)
	}
}

func TestAnEndingRunFinishesWhatItBegan(t *testing.T) {
	h := newHouse(t)
	gate := make(chan struct{})
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction { return pubsubtest.Reaction{Gate: gate} })
	session := newSession()
	ids := h.add(events(session, "lc")...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Report)
	r := h.relay()
	go func() {
		report, _ := r.Run(ctx, Orders{})
		done <- report
	}()
	for h.broker.Requests() == 0 {
		h.exec(`SELECT 1`)
	}
	cancel()
	close(gate)
	if report := <-done; report.Published != 1 || report.Outages != 0 || report.Depth != 1 {
		t.Errorf("%+v", report)
	}
	h.once(r)
	h.expect(session, ids)
	if all, _ := h.duplicates(); all != 0 {
		t.Errorf("%d duplicates", all)
	}
}

func TestWithoutPostgresARunFails(t *testing.T) {
	h := newHouse(t)
	r := h.relay(func(e *environment) {
		e.DatabaseURL = "postgres://nobody@127.0.0.1:1/none"
		e.Run = 300 * time.Millisecond
	})
	report, err := r.Run(t.Context(), Orders{})
	if err == nil || report.Failures == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
