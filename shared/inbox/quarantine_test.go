package inbox

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestInboxQuarantine_KeepsDifferentMessagesWithSameID(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	for _, c := range []struct {
		data    string
		attempt int
		rows    int
	}{
		{"bm8=", 1, 1}, {"bm8=", 2, 1}, {"bm90aGluZw==", 1, 2}, {"bm90aGluZw==", 2, 2}, {"bm8=", 3, 2}, {"not base64", 1, 3},
	} {
		body := fmt.Sprintf(`{"message":{"messageId":"7","data":%q},"deliveryAttempt":%d}`, c.data, c.attempt)
		report, err := d.Receive(httptest.NewRequest("POST", "/", strings.NewReader(body)), subject, d.effect)
		if err != nil || report.Outcome != Quarantined {
			t.Fatalf("%s: got %+v, %v, want it quarantined", body, report, err)
		}
		if n := d.countRows(t, "inbox_parked"); n != c.rows {
			t.Errorf("after %s: got %d rows, want %d", body, n, c.rows)
		}
	}
	for range 2 {
		if _, err := d.Receive(newDelivery("not an event"), subject, d.effect); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Receive(newDelivery("also not an event"), subject, d.effect); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.countRows(t, "inbox_parked"); n != 5 {
		t.Errorf("got %d rows, want 5", n)
	}
}

func TestInboxReceive_ComparesLargeNumbersExactly(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	event, tenant := id.New(id.Event, time.Now()), id.New(id.Tenant, time.Now())
	for _, c := range []struct {
		number string
		want   Outcome
	}{{"12345678901234567", Processed}, {"12345678901234567", Duplicate}, {"12345678901234568", Quarantined}} {
		text := eventJSON(event, `{"tenantId":"`+tenant+`","n":`+c.number+`}`)
		if report, err := d.Receive(newDelivery(text), subject, d.effect); err != nil || report.Outcome != c.want {
			t.Errorf("%s: got %+v, %v, want %s", c.number, report, err, c.want)
		}
	}
}
