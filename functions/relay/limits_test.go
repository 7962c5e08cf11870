package relay

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// inflate makes rows larger by so many bytes.
func (h *house) inflate(bytes int, ids ...string) {
	h.exec(`UPDATE bff_consumer.outbox
		SET payload = jsonb_set(payload, '{payload,more}', to_jsonb(repeat('x', $2)))
		WHERE id = ANY ($1)`, ids, bytes)
}

func TestRowsThatAreTooMuchForOneRequestGoInSeveral(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, strings.Repeat("l", 20))...)
	h.inflate(300_000, ids...)
	if report := h.once(h.relay()); report.Published != 20 || report.Requests != 2 || report.Outages != 0 { // the broker takes 4 MiB
		t.Errorf("%+v", report)
	}
	h.expect(session, ids)
}

func TestARowThatNoBrokerTakesIsParkedWithoutAskingOne(t *testing.T) {
	h := newHouse(t)
	logged(t)
	session, other := newSession(), newSession()
	ids := h.add(events(session, "lll")...)
	h.inflate(10_000_000, ids[1])
	fine := h.add(events(other, "l")...)
	r := h.relay()
	for range parkAfter {
		if report := h.once(r); report.Outages != 0 || report.Refused != 1 {
			t.Fatalf("%+v", report)
		}
		h.advance(12 * time.Minute)
	}
	if report := h.once(r); report.Parked != 1 || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expect(session, []string{ids[0], ids[2]})
	h.expect(other, fine)
}

func TestAClockThatWasAheadHoldsNothingBackOnceItIsRight(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, "ll")...)
	loose := h.insert(locales, `{}`, `{}`)
	h.broker.React(refusing(codes.InvalidArgument, ids[0]))
	r := h.relay()
	h.advance(240 * time.Hour)
	if report := h.once(r); report.Refused != 2 {
		t.Errorf("%+v", report)
	}
	h.broker.React(nil)
	h.advance(-240 * time.Hour)
	if report := h.once(r); report.Published != 2 || report.Refused != 1 {
		t.Errorf("%+v", report)
	}
	h.expect(session, ids)
	if n := read[int](h, `SELECT attempts FROM bff_consumer.outbox WHERE id = $1`, loose); n != 2 {
		t.Errorf("the row without a session was tried %d times", n)
	}
}

func TestNothingIsSentWhileTheDatabaseOnlyReads(t *testing.T) {
	h := newHouse(t)
	logged(t)
	session := newSession()
	ids := h.add(events(session, "ll")...)
	database := read[string](h, `SELECT quote_ident(current_database())`)
	h.exec(`ALTER DATABASE ` + database + ` SET default_transaction_read_only = on`)
	if report, err := h.relay().Run(t.Context(), Orders{Once: true}); err == nil || report.Attempts != 0 || report.Depth != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	h.exec(`BEGIN READ WRITE; ALTER DATABASE ` + database + ` RESET default_transaction_read_only; COMMIT`)
	h.once(h.relay())
	h.expect(session, ids)
	if all, _ := h.duplicates(); all != 0 {
		t.Errorf("%d came twice", all)
	}
}
