package relay

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// enlargePayloads makes rows larger by so many bytes.
func (h *harness) enlargePayloads(bytes int, ids ...string) {
	h.exec(`UPDATE bff_consumer.outbox
		SET payload = jsonb_set(payload, '{payload,more}', to_jsonb(repeat('x', $2)))
		WHERE id = ANY ($1)`, ids, bytes)
}

func TestRelayRun_SplitsRequestsBySize(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, strings.Repeat("l", 20))...)
	h.enlargePayloads(300_000, ids...)
	if report := h.runOnce(h.newRelay()); report.Published != 20 || report.Requests != 2 || report.Outages != 0 { // the broker takes 4 MiB
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, ids)
}

func TestRelayRun_ParksOversizedRowWithoutSending(t *testing.T) {
	h := newHarness(t)
	captureLogs(t)
	session, other := newSession(), newSession()
	ids := h.addEvents(newEvents(session, "lll")...)
	h.enlargePayloads(10_000_000, ids[1])
	fine := h.addEvents(newEvents(other, "l")...)
	r := h.newRelay()
	for range maxAttempts {
		if report := h.runOnce(r); report.Outages != 0 || report.Rejected != 1 {
			t.Fatalf("%+v", report)
		}
		h.advance(12 * time.Minute)
	}
	if report := h.runOnce(r); report.Parked != 1 || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, []string{ids[0], ids[2]})
	h.expectReceived(other, fine)
}

func TestRelayRun_IgnoresBackoffSetByFastClock(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	loose := h.insertRow(localeTopic, `{}`, `{}`)
	h.broker.SetBehavior(rejectEvents(codes.InvalidArgument, ids[0]))
	r := h.newRelay()
	h.advance(240 * time.Hour)
	if report := h.runOnce(r); report.Rejected != 2 {
		t.Errorf("%+v", report)
	}
	h.broker.SetBehavior(nil)
	h.advance(-240 * time.Hour)
	if report := h.runOnce(r); report.Published != 2 || report.Rejected != 1 {
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, ids)
	if n := queryValue[int](h, `SELECT attempts FROM bff_consumer.outbox WHERE id = $1`, loose); n != 2 {
		t.Errorf("the row without a session was tried %d times", n)
	}
}

func TestRelayRun_SendsNothingWhileDatabaseIsReadOnly(t *testing.T) {
	h := newHarness(t)
	captureLogs(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	database := queryValue[string](h, `SELECT quote_ident(current_database())`)
	h.exec(`ALTER DATABASE ` + database + ` SET default_transaction_read_only = on`)
	if report, err := h.newRelay().Run(t.Context(), Options{Once: true}); err == nil || report.Attempts != 0 || report.Depth != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	h.exec(`BEGIN READ WRITE; ALTER DATABASE ` + database + ` RESET default_transaction_read_only; COMMIT`)
	h.runOnce(h.newRelay())
	h.expectReceived(session, ids)
	if all, _ := h.countDuplicates(); all != 0 {
		t.Errorf("%d came twice", all)
	}
}
