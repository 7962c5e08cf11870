package relay

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// enlargePayloads adds bytes to the payloads of rows.
func (h *harness) enlargePayloads(bytes int, ids ...string) {
	h.Exec(`UPDATE bff_consumer.outbox
		SET payload = jsonb_set(payload, '{payload,more}', to_jsonb(repeat('x', $2)))
		WHERE id = ANY ($1)`, ids, bytes)
}

func TestRelayRun_SplitsRequestsBySize(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, strings.Repeat("l", 20))...)
	h.enlargePayloads(300_000, ids...)
	// the fake accepts 4 MiB
	if report := h.runOnce(h.newRelay()); report.Published != 20 || report.Requests != 2 || report.Outages != 0 {
		t.Errorf("got %+v, want 20 published rows in 2 requests without outage", report)
	}
	h.expectReceived(session, ids)
}

func TestRelayRun_ParksOversizedRowWithoutSending(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session, other := newSession(), newSession()
	ids := h.addEvents(newEvents(session, "lll")...)
	h.enlargePayloads(10_000_000, ids[1])
	otherIDs := h.addEvents(newEvents(other, "l")...)
	r := h.newRelay()
	for range maxAttempts {
		if report := h.runOnce(r); report.Outages != 0 || report.Rejected != 1 {
			t.Fatalf("got %+v, want 1 rejected row and no outage", report)
		}
		h.advancePast(12 * time.Minute)
	}
	if report := h.runOnce(r); report.Parked != 1 || report.Depth != 0 {
		t.Errorf("got %+v, want 1 parked and no pending row", report)
	}
	h.expectReceived(session, []string{ids[0], ids[2]})
	h.expectReceived(other, otherIDs)
}

func TestRelayRun_IgnoresBackoffSetByFastClock(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	withoutSession := h.insertRow(localeTopic, `{}`, `{}`)
	h.broker.SetBehavior(rejectEvents(codes.InvalidArgument, ids[0]))
	r := h.newRelay()
	h.advancePast(240 * time.Hour)
	if report := h.runOnce(r); report.Rejected != 2 {
		t.Errorf("fast clock: got %+v, want 2 rejected rows", report)
	}
	h.broker.SetBehavior(nil)
	h.advancePast(-240 * time.Hour)
	if report := h.runOnce(r); report.Published != 2 || report.Rejected != 1 {
		t.Errorf("correct clock: got %+v, want 2 published and 1 rejected row", report)
	}
	h.expectReceived(session, ids)
	if n := queryValue[int](h, `SELECT attempts FROM bff_consumer.outbox WHERE id = $1`, withoutSession); n != 2 {
		t.Errorf("attempts of the row without a session: got %d, want 2", n)
	}
}

func TestRelayRun_SendsNothingWhileDatabaseIsReadOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	database := queryValue[string](h, `SELECT quote_ident(current_database())`)
	h.Exec(`ALTER DATABASE ` + database + ` SET default_transaction_read_only = on`)
	if report, err := h.newRelay().Run(t.Context(), Options{Once: true}); err == nil || report.Attempts != 0 || report.Depth != 2 {
		t.Errorf("got %+v, %v, want an error, no attempt and 2 pending rows", report, err)
	}
	h.Exec(`BEGIN READ WRITE; ALTER DATABASE ` + database + ` RESET default_transaction_read_only; COMMIT`)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("got %d duplicates, want none", all)
	}
}
