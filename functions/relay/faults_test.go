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

// rejectEvents rejects every request with at least one of the messages.
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
	t.Parallel()
	for _, code := range []codes.Code{codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			r := h.newRelay()
			session, other := newSession(), newSession()
			ids := h.addEvents(newEvents(session, "llll")...)
			bad := ids[2]
			h.broker.SetBehavior(rejectEvents(code, bad))
			var last time.Duration
			for attempt := 1; attempt <= maxAttempts; attempt++ {
				others := h.addEvents(newEvents(other, "l")...)
				report := h.runOnce(r)
				if report.Rejected != 1 || report.Outages != 0 {
					t.Fatalf("attempt %d: got %+v, want 1 rejected row and no outage", attempt, report)
				}
				if attempt == 1 {
					if report.Requests != 5 { // all four rows, the first three singly, the other session
						t.Errorf("attempt 1: got %d requests, want 5", report.Requests)
					}
					h.expectReceived(session, ids[:2])
				}
				if !slices.Contains(h.receivedIDs(other), others[0]) {
					t.Fatalf("attempt %d delays another session", attempt)
				}
				if attempt == maxAttempts {
					break
				}
				h.addEvents(newEvents(session, "l")...) // waits behind the rejected row
				if report := h.runOnce(r); report.Attempts != 0 {
					t.Fatalf("after attempt %d, before the row is due: got %d attempts, want none", attempt, report.Attempts)
				}
				wait := queryValue[time.Time](h, `SELECT due_at FROM bff_consumer.outbox WHERE id = $1`, bad).Sub(h.Now())
				want := min(time.Second<<(attempt-1), maxBackoff)
				if wait < want*8/10-time.Millisecond || wait > want*12/10 {
					t.Errorf("after attempt %d: got a backoff of %s, want %s ± 20 %%", attempt, wait, want)
				}
				last = wait
				h.advancePast(wait)
			}
			if last < 8*time.Minute {
				t.Errorf("got a last backoff of %s, want at least 8m", last)
			}
			if report := h.runOnce(r); report.Parked != 1 || report.Depth != 0 {
				t.Errorf("after parking: got %+v, want 1 parked and no pending row", report)
			}
			if got := h.receivedIDs(session); len(got) != 3+maxAttempts-1 || slices.Contains(got, bad) || !slices.IsSorted(got) {
				t.Errorf("got %d messages %v, want %d in order without %s", len(got), got, 3+maxAttempts-1, bad)
			}
			lastError := queryValue[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1 AND parked_at IS NOT NULL AND attempts = 20`, bad)
			if want := code.String() + ": rejected by the test"; lastError != want {
				t.Errorf("last_error: got %q, want %q", lastError, want)
			}
		})
	}
}

func TestRelayRun_InvalidPayloadBlocksOnlyItsSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	first := h.addEvents(newEvents(session, "ll")...)
	headers := `{"eventId":"x","orderingKey":"` + session + `"}`
	bad := h.insertRow(localeTopic, `["a canary"]`, headers)
	later := h.addEvents(newEvents(session, "l")...)
	withoutOrder := map[string]string{} // rows of sessions without another row
	for _, c := range [][2]string{
		{`{"envelope":{},"payload":{}}`, `{"orderingKey":"` + newSession() + `"}`},
		{`null`, `"text"`}, {`7`, `{"orderingKey":7}`}, {`{}`, `null`}, {`{}`, `[]`},
	} {
		withoutOrder[h.insertRow(localeTopic, c[0], c[1])] = c[0]
	}
	other := newSession()
	otherIDs := h.addEvents(newEvents(other, "l")...)
	r := h.newRelay()
	report := h.runOnce(r)
	if report.Published != 3 || report.Rejected != int64(1+len(withoutOrder)) {
		t.Errorf("got %+v, want 3 published and %d rejected rows", report, 1+len(withoutOrder))
	}
	h.expectReceived(session, first)
	h.expectReceived(other, otherIDs)
	lastError := queryValue[string](h, `SELECT last_error FROM bff_consumer.outbox WHERE id = $1`, bad)
	if !strings.Contains(lastError, "JSON object") || strings.Contains(lastError, "canary") {
		t.Errorf("last_error: got %q, want a reason without content of the row", lastError)
	}
	for range maxAttempts - 1 {
		h.advancePast(12 * time.Minute)
		h.runOnce(r)
	}
	if report := h.runOnce(r); report.Parked != int64(1+len(withoutOrder)) || report.Depth != 0 {
		t.Errorf("got %+v, want %d parked and no pending rows", report, 1+len(withoutOrder))
	}
	h.expectReceived(session, append(first, later...))
}

func TestRelayRun_RejectsInvalidHeaders(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "l")...)
	h.Exec(`UPDATE bff_consumer.outbox SET headers = headers || '{"number": 7}'`)
	if report := h.runOnce(h.newRelay()); report.Rejected != 1 || report.Requests != 0 {
		t.Errorf("got %+v, want 1 rejected row without a request", report)
	}
	h.Exec(`UPDATE bff_consumer.outbox SET headers = headers - 'number', due_at = NULL`)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
}

func TestRelayRun_OutageCostsNoAttemptsAndDrainsAfterwards(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{
		codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
		codes.Internal, codes.Aborted, codes.Canceled, codes.Unknown, codes.Unimplemented, codes.DataLoss, codes.AlreadyExists,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
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
				if topic, got, _ := strings.Cut(report.LastOutage, ": "); got != code.String() || !slices.Contains(event.Subjects(), topic) {
					t.Errorf("got the last outage %q, want a topic and %s", report.LastOutage, code)
				}
				if report.Rejected != 0 || report.Parked != 0 || report.Published != 0 || report.Depth != 80 {
					t.Fatalf("got %+v, want 80 pending rows and nothing else", report)
				}
				if report.Requests > 40 {
					t.Errorf("got %d requests to an unavailable broker, want at most 40", report.Requests)
				}
				h.advancePast(30 * 24 * time.Hour)
			}
			if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0 OR due_at IS NOT NULL OR last_error IS NOT NULL`); n != 0 {
				t.Errorf("got %d charged rows, want none", n)
			}
			h.broker.SetBehavior(nil)
			if report := h.runOnce(r); report.Published != 80 || report.Depth != 0 || report.LastOutage != "" {
				t.Errorf("after recovery: got %+v, want 80 published rows and no outage", report)
			}
			for session, ids := range want {
				h.expectReceived(session, ids)
			}
		})
	}
}

func TestRelayRun_ResumesWhenBrokerRecovers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.broker.Stop()
	stop := h.startRun(h.newRelay())
	session := newSession()
	ids := h.addEvents(newEvents(session, "lcl")...)
	for h.countRelayBackends() == 0 { // the relay polls
		h.Exec(`SELECT 1`)
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

// countRelayBackends returns the number of connections of relays to the test's database.
func (h *harness) countRelayBackends() int {
	return queryValue[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer' AND state IS NOT NULL`)
}

func TestRelayRun_UnavailableTopicBlocksOnlyLaterRows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		if r.Topic == currencyTopic {
			return pubsubtest.Behavior{RejectCode: codes.PermissionDenied}
		}
		return pubsubtest.Behavior{}
	})
	shardOf := newSession()
	for range 3 * batchSize { // earlier rows of the same shard
		h.addEvents(newEvents(newSessionInShard(shardOf), "c")...)
	}
	session := newSessionInShard(shardOf)
	ids := h.addEvents(newEvents(session, "ll")...)
	report := h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if report.Requests > 60 || report.Depth != 3*batchSize {
		t.Errorf("got %+v, want at most 60 requests and %d pending rows", report, 3*batchSize)
	}
}

func TestRelayRun_RetriesLostResponseInOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "llcl")...)
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		return pubsubtest.Behavior{LoseResponse: r.Number == 1 || r.Number == 3}
	})
	r := h.newRelay()
	for h.PendingEvents() > 0 {
		h.runOnce(r)
	}
	h.expectReceived(session, ids)
	if all, lost := h.countDuplicates(); all != 3 || lost != 3 {
		t.Errorf("got %d duplicates, %d after lost responses, want 3 and 3", all, lost)
	}
}

func TestRelayRun_HungRequestBlocksOnlyItsSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	blocked, free := newSession(), newSession()
	gate := make(chan struct{})
	h.broker.SetBehavior(func(r pubsubtest.Request) pubsubtest.Behavior {
		if r.OrderingKey == blocked {
			return pubsubtest.Behavior{Gate: gate}
		}
		return pubsubtest.Behavior{}
	})
	h.addEvents(newEvents(blocked, "l")...)
	stop := h.startRun(h.newRelay())
	for range 3 {
		h.addEvents(newEvents(free, "l")...)
	}
	h.awaitMessages(3)
	close(gate)
	h.awaitMessages(4)
	if report := stop(); report.Published != 4 || report.Outages != 0 {
		t.Errorf("got %+v, want 4 published rows and no outage", report)
	}
}

func TestRelayRun_LosesNothingWhenConnectionsAreTerminated(t *testing.T) {
	t.Parallel()
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
		h.Exec(`SELECT 1`)
	}
	// The rows of the requests under way are sent, and cannot be marked.
	h.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bff-consumer'`)
	other := h.newRelay() // can lock the shards at once
	h.broker.SetBehavior(nil)
	if report := h.runOnce(other); report.Failures != 0 {
		t.Errorf("other relay: got %d failures, want none", report.Failures)
	}
	close(gate)
	report, err := stop()
	if err != nil && report.Published > 0 { // an error is right only when nothing was published
		t.Errorf("got %v with %d published rows, want no error", err, report.Published)
	}
	h.runOnce(other) // Postgres ends a terminated connection a moment later
	if report.Failures == 0 || h.PendingEvents() != 0 {
		t.Errorf("got %+v and %d pending rows, want failures and no pending row", report, h.PendingEvents())
	}
	for session, ids := range want {
		h.expectReceived(session, ids)
	}
	if all, _ := h.countDuplicates(); all > total {
		t.Errorf("got %d duplicates of %d messages, want at most 1 each", all, total)
	}
}

func TestRelayRun_CancelledRunFinishesRequestsInFlight(t *testing.T) {
	t.Parallel()
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
	h.awaitRequests(1)
	cancel()
	close(gate)
	if report := <-done; report.Published != 1 || report.Outages != 0 || report.Depth != 1 {
		t.Errorf("got %+v, want 1 published and 1 pending row without outage", report)
	}
	h.runOnce(r)
	h.expectReceived(session, ids)
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("got %d duplicates, want none", all)
	}
}

func TestRelayRun_FailsWithoutPostgres(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	r := h.newRelay(withoutPostgres, func(e *environment) { e.Run = 300 * time.Millisecond })
	report, err := r.Run(t.Context(), Options{})
	if err == nil || report.Failures == 0 {
		t.Errorf("got %+v, %v, want failures and an error", report, err)
	}
}
