package inbox

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestAnotherMessageUnderAnIDThatIsParkedIsARowOfItsOwn(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		data    string
		attempt int
		rows    int
	}{
		{"bm8=", 1, 1}, {"bm8=", 2, 1}, {"bm90aGluZw==", 1, 2}, {"bm90aGluZw==", 2, 2}, {"bm8=", 3, 2}, {"not base64", 1, 3},
	} {
		body := fmt.Sprintf(`{"message":{"messageId":"7","data":%q},"deliveryAttempt":%d}`, c.data, c.attempt)
		report, err := d.Receive(httptest.NewRequest("POST", "/", strings.NewReader(body)), subject, d.read)
		if err != nil || report.Outcome != Parked {
			t.Fatalf("%s: %+v, %v", body, report, err)
		}
		if n := d.rows(t, "inbox_parked"); n != c.rows {
			t.Errorf("after %s there are %d rows, not %d", body, n, c.rows)
		}
	}
	for range 2 {
		if _, err := d.Receive(deliver("no event"), subject, d.read); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Receive(deliver("another that is none"), subject, d.read); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.rows(t, "inbox_parked"); n != 5 {
		t.Errorf("%d rows", n)
	}
}

func TestLargeNumbersTellTwoEventsApart(t *testing.T) {
	d := newDesk(t)
	event, tenant := id.New(id.Event, time.Now()), id.New(id.Tenant, time.Now())
	for _, c := range []struct {
		number string
		want   Outcome
	}{{"12345678901234567", Done}, {"12345678901234567", Again}, {"12345678901234568", Parked}} {
		text := data(event, `{"tenantId":"`+tenant+`","n":`+c.number+`}`)
		if report, err := d.Receive(deliver(text), subject, d.read); err != nil || report.Outcome != c.want {
			t.Errorf("%s: %+v, %v", c.number, report, err)
		}
	}
}
