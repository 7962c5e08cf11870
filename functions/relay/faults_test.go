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

// rejectEvents refuses every request with one of these messages in it.
func rejectEvents(code codes.Code, ids ...string) func(pubsubtest.Request) pubsubtest.Behavior {
	return func(r pubsubtest.Request) pubsubtest.Behavior {
		for _, m := range r.Messages {
			if slices.Contains(ids, m.Attributes["eventId"]) {
				return pubsubtest.Behavior{RejectCode: code}
			}
		}
		return pubsubtest.Behavior{}
	}
}

func TestRelayRun_ParksRejectedRowAndBlocksOnlyItsSession(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange} {
		t.Run(code.String(), func(t *testing.T) {
			h := newHarness(t)
			captureLogs(t)
			r := h.newRelay()
			mine, other := newSession(), newSession()
			ids := h.addEvents(newEvents(mine, "llll")...)
			bad := ids[2]
			h.broker.SetBehavior(rejectEvents(code, bad))
			var last time.Duration
			for attempt := 1; attempt <= maxAttempts; attempt++ {
				others := h.addEvents(newEvents(other, "l")...)
				report := h.runOnce(r)
				if report.Rejected != 1 || report.Outages != 0 {
					t.Fatalf("attempt %d: %+v", attempt, report)
				}
				if attempt == 1 {
					if report.Requests != 5 { // together; one, two, three by themselves; the other session
						t.Errorf("%+v", report)
					}
					h.expectReceived(mine, ids[:2])
				}
				if !slices.Contains(h.receivedIDs(other), others[0]) {
					t.Fatalf("attempt %d holds up another session", attempt)
				}
				if attempt == maxAttempts {
					break
				}
				h.addEvents(newEvents(mine, "l")...) // waits with the others
				if report := h.runOnce(r); report.Attempts != 0 {
					t.Fatalf("after attempt %d, before it is due: %+v", attempt, report)
				}
				wait := queryValue[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, bad).Sub(h.now())
				want := min(time.Second<<(attempt-1), maxBackoff)
				if wait < want*8/10-time.Millisecond || wait > want*12/10 {
					t.Errorf("after attempt %d it waits %s", attempt, wait)
				}
				last = wait
				h.advance(wait)
			}
			if last < 8*time.Minute {
				t.Errorf("the last pause was %s", last)
			}
			if report := h.runOnce(r); report.Parked != 1 || report.Depth != 0 {
				t.Errorf("after it was parked: %+v", report)
			}
			if got := h.receivedIDs(mine); len(got) != 3+maxAttempts-1 || slices.Contains(got, bad) || !slices.IsSorted(got) {
				t.Errorf("%d arrived: %v", len(got), got)
			}
			why := queryValue[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1 AND parked_at IS NOT NULL AND attempts = 20`, bad)
			if why != code.String()+": rejected by the test" {
				t.Error(why)
			}
		})
	}
}

func TestRelayRun_InvalidPayloadBlocksOnlyItsSession(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	first := h.addEvents(newEvents(session, "ll")...)
	headers := `{"eventId":"x","orderingKey":"` + session + `"}`
	bad := h.insertRow(localeTopic, `["a canary"]`, headers)
	later := h.addEvents(newEvents(session, "l")...)
	alone := map[string]string{}
	for _, c := range [][2]string{
		{`{"envelope":{},"payload":{}}`, `{"orderingKey":"` + newSession() + `"}`},
		{`null`, `"text"`}, {`7`, `{"orderingKey":7}`}, {`{}`, `null`}, {`{}`, `[]`},
	} {
		alone[h.insertRow(localeTopic, c[0], c[1])] = c[0]
	}
	neighbour := newSession()
	fine := h.addEvents(newEvents(neighbour, "l")...)
	r := h.newRelay()
	report := h.runOnce(r)
	if report.Published != 3 || report.Rejected != int64(1+len(alone)) {
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, first)
	h.expectReceived(neighbour, fine)
	why := queryValue[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1`, bad)
	if !strings.Contains(why, "no JSON object") || strings.Contains(why, "canary") {
		t.Error(why)
	}
	for range maxAttempts - 1 {
		h.advance(12 * time.Minute)
		h.runOnce(r)
	}
	if report := h.runOnce(r); report.Parked != int64(1+len(alone)) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, append(first, later...))
}

func TestRelayRun_RejectsInvalidHeaders(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.exec(`UPDATE bff_consumer.outbox SET headers = headers || '{"number": 7}'`)
	if report := h.runOnce(h.newRelay()); report.Rejected != 1 || report.Requests != 0 {
		t.Errorf("%+v", report)
	}
	h.exec(`UPDATE bff_consumer.outbox SET headers = headers - 'number', due_at = NULL`)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
}

func TestRelayRun_OutageCostsNoAttemptsAndDrainsAfterwards(t *testing.T) {
	for _, code := range []codes.Code{
		codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
		codes.Internal, codes.Aborted, codes.Canceled, codes.Unknown, codes.Unimplemented, codes.DataLoss, codes.AlreadyExists,
	} {
		t.Run(code.String(), func(t *testing.T) {
			h := newHarness(t)
			h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior { return pubsubtest.Behavior{RejectCode: code} })
			want := map[string][]string{}
			for range 40 {
				session := newSession()
				want[session] = h.addEvents(newEvents(session, "lc")...)
			}
			r := h.newRelay()
			for range 3 {
				report := h.runOnce(r)
				if topic, why, _ := strings.Cut(report.LastOutage, ": "); why != code.String() || !slices.Contains(event.Subjects(), topic) {
					t.Errorf("%+v", report)
				}
				if report.Rejected != 0 || report.Parked != 0 || report.Published != 0 || report.Depth != 80 {
					t.Fatalf("%+v", report)
				}
				if report.Requests > 40 {
					t.Errorf("%d requests to a broker that is away", report.Requests)
				}
				h.advance(30 * 24 * time.Hour)
			}
			if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0 OR due_at IS NOT NULL OR last_error IS NOT NULL`); n != 0 {
				t.Errorf("%d rows were charged", n)
			}
			h.broker.SetBehavior(nil)
			if report := h.runOnce(r); report.Published != 80 || report.Depth != 0 || report.LastOutage != "" {
				t.Errorf("%+v", report)
			}
			for session, ids := range want {
				h.expectReceived(session, ids)
			}
		})
	}
}

func TestRelayRun_ResumesWhenBrokerRecovers(t *testing.T) {
	h := newHarness(t)
	h.broker.Stop()
	stop := h.startRun(h.newRelay())
	session := newSession()
	ids := h.addEvents(newEvents(session, "lcl")...)
	for h.countRelayBackends() == 0 { // by its looks for work
		h.exec(`SELECT 1`)
	}
	again, err := pubsubtest.StartAt(h.broker.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	h.broker = again
	h.awaitMessages(3)
	h.expectReceived(session, ids)
	stop()
}

// countRelayBackends is how many statements but ours run, or ran last, on this database.
func (h *harness) countRelayBackends() int {
	return queryValue[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer' AND state IS NOT NULL`)
}

func TestRelayRun_UnavailableTopicBlocksOnlyLaterRows(t *testing.T) {
	h := newHarness(t)
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		if r.Topic == currencyTopic {
			return pubsubtest.Behavior{RejectCode: codes.PermissionDenied}
		}
		return pubsubtest.Behavior{}
	})
	lane := newSession()[29:]
	for range 3 * batchSize { // before the others, in the same lane
		h.addEvents(newEvents(newSession()[:29]+lane, "c")...)
	}
	session := newSession()[:29] + lane
	ids := h.addEvents(newEvents(session, "ll")...)
	report := h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if report.Requests > 60 || report.Depth != 3*batchSize {
		t.Errorf("%+v", report)
	}
}

func TestRelayRun_RetriesLostResponseInOrder(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "llcl")...)
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		return pubsubtest.Behavior{LoseResponse: r.Number == 1 || r.Number == 3}
	})
	r := h.newRelay()
	for h.countPending() > 0 {
		h.runOnce(r)
	}
	h.expectReceived(session, ids)
	if all, lost := h.countDuplicates(); all != 3 || lost != 3 {
		t.Errorf("%d duplicates, %d of them owed to lost answers", all, lost)
	}
}

func TestRelayRun_HungRequestBlocksOnlyItsSession(t *testing.T) {
	h := newHarness(t)
	stuck, free := newSession(), newSession()
	gate := make(chan struct{})
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		if r.OrderingKey == stuck {
			return pubsubtest.Behavior{Gate: gate}
		}
		return pubsubtest.Behavior{}
	})
	h.addEvents(newEvents(stuck, "l")...)
	stop := h.startRun(h.newRelay())
	for range 3 {
		h.addEvents(newEvents(free, "l")...)
	}
	h.awaitMessages(3)
	close(gate)
	h.awaitMessages(4)
	if report := stop(); report.Published != 4 || report.Outages != 0 {
		t.Errorf("%+v", report)
	}
}

func TestRelayRun_LosesNothingWhenConnectionsAreTerminated(t *testing.T) {
	h := newHarness(t)
	gate := make(chan struct{})
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior { return pubsubtest.Behavior{Gate: gate} })
	want := map[string][]string{}
	total := 0
	for range 30 {
		session := newSession()
		want[session] = h.addEvents(newEvents(session, "lcl")...)
		total += 3
	}
	stop := h.startFallibleRun(h.newRelay())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for h.broker.Requests() == 0 && ctx.Err() == nil {
		h.exec(`SELECT 1`)
	}
	// Requests are under way: their rows are sent and will not be marked.
	h.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer'`)
	other := h.newRelay() // may have the lanes at once
	h.broker.SetBehavior(nil)
	if report := h.runOnce(other); report.Failures != 0 {
		t.Errorf("the other: %+v", report)
	}
	close(gate)
	report, err := stop()
	if err != nil && report.Published > 0 { // it says so when all that it did was cut
		t.Error(err)
	}
	h.runOnce(other) // a server that is told to end a connection does it a moment later
	if report.Failures == 0 || h.countPending() != 0 {
		t.Errorf("%+v, %d wait", report, h.countPending())
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, _ := h.countDuplicates(); all > total {
		t.Errorf("%d duplicates of %d", all, total)
	}
}

func TestRelayRun_CancelledRunFinishesRequestsInFlight(t *testing.T) {
	h := newHarness(t)
	gate := make(chan struct{})
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior { return pubsubtest.Behavior{Gate: gate} })
	session := newSession()
	ids := h.addEvents(newEvents(session, "lc")...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Report)
	r := h.newRelay()
	go func() {
		report, _ := r.Run(ctx, Options{})
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
	h.runOnce(r)
	h.expectReceived(session, ids)
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("%d duplicates", all)
	}
}

func TestRelayRun_FailsWithoutPostgres(t *testing.T) {
	h := newHarness(t)
	r := h.newRelay(func(e *environment) {
		e.Postgres.URL = "postgres://nobody@127.0.0.1:1/none"
		e.Run = 300 * time.Millisecond
	})
	report, err := r.Run(t.Context(), Options{})
	if err == nil || report.Failures == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
