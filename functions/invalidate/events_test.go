package invalidate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

const cell = "h3:8a283082aa67fff"

func parent(t *testing.T, res int) string {
	t.Helper()
	c, err := geo.ParseCell(cell)
	if err != nil {
		t.Fatal(err)
	}
	return c.Parent(res).String()
}

func TestAThemeEmptiesItsTenantAndNobodyElse(t *testing.T) {
	h := newHouse(t)
	tenant, other := newTenant(), newTenant()
	h.keep("brand", cache.Tenant(tenant))
	h.keep("page", cache.Tenant(other), cache.Tenant(tenant), cache.Property(newProperty()), cache.Cell(cell))
	h.keep("others", cache.Tenant(other), cache.Cell(cell))
	e := theme(tenant)
	if got := h.done(e); got.Removed != 2 || got.EventID != e.id || !h.processed(e) {
		t.Errorf("%+v", got)
	}
	if h.state("brand") != cache.Miss || h.state("page") != cache.Miss || h.state("others") != cache.Hit {
		t.Errorf("brand %s, page %s, others %s", h.state("brand"), h.state("page"), h.state("others"))
	}
	record := h.logged()
	if record["outcome"] != "done" || record["eventId"] != e.id || record["removed"] != 2.0 || record["attempt"] != 2.0 || record["severity"] != "INFO" {
		t.Errorf("%v", record)
	}
	h.keep("brand", cache.Tenant(tenant))
	if got := h.done(e); got.Outcome != "again" || got.Removed != 0 || h.state("brand") != cache.Hit {
		t.Errorf("told twice: %+v", got)
	}
}

func TestAListingEmptiesWhatShowsItAndWhereverItMayBeFound(t *testing.T) {
	h := newHouse(t)
	property := newProperty()
	for name, tags := range map[string][]string{
		"detail": {cache.Property(property), cache.Tenant(newTenant())}, "anywhere": {cache.Anywhere},
		"district": {cache.Cell(parent(t, 8))}, "city": {cache.Cell(parent(t, 5)), cache.Cell("h3:842f2cdffffffff")},
		"world": {cache.Cell(parent(t, 0))}, "cell": {cache.Cell(cell)},
		"elsewhere": {cache.Cell("h3:842f2cdffffffff")}, "other": {cache.Property(newProperty())},
	} {
		h.keep(name, tags...)
	}
	if got := h.done(listing(property, cell)); got.Removed != 6 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]cache.State{
		"detail": cache.Miss, "anywhere": cache.Miss, "district": cache.Miss, "city": cache.Miss, "world": cache.Miss, "cell": cache.Miss,
		"elsewhere": cache.Hit, "other": cache.Hit,
	} {
		if got := h.state(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestATenantIsSuspendedAndReinstated(t *testing.T) {
	h := newHouse(t)
	tenant, other, now := newTenant(), newTenant(), time.Now()
	h.keep("page", cache.Tenant(tenant))
	h.keep("others", cache.Tenant(other))
	if got := h.done(suspension(tenant, now)); got.Removed != 1 || h.state("others") != cache.Hit || !h.shown(tenant) || h.shown(other) {
		t.Errorf("suspended: %+v", got)
	}
	if record := h.logged(); record["suspended"] != true {
		t.Errorf("%v", record)
	}
	reason := read[string](h, `SELECT reason FROM bff_consumer.tenant_suspended_cache WHERE suspended_at = $1`, now.Truncate(time.Millisecond))
	if reason != "billing-overdue" {
		t.Errorf("reason %s", reason)
	}
	h.keep("page", cache.Tenant(tenant))
	if got := h.done(reinstatement(tenant, now.Add(time.Second))); got.Removed != 1 || h.state("others") != cache.Hit || h.shown(tenant) {
		t.Errorf("reinstated: %+v", got)
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache`); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestASuspensionWithoutAReasonHoldsAllTheSame(t *testing.T) {
	h := newHouse(t)
	for name, reason := range map[string]string{"unspecified": ``, "ab": `,"reason":"a\u0000b"`, "later": `,"reason":"later","newField":{"a":[1]}`} {
		tenant := newTenant()
		h.done(tell("tenant-suspended", `{"tenantId":"`+tenant+`","suspendedAt":"2020-11-20T12:00:00+04:30"`+reason+`}`))
		if !h.shown(tenant) {
			t.Errorf("%s is not suspended", name)
		}
		if n := read[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache WHERE reason = $1 AND suspended_at = '2020-11-20T07:30:00Z'`, name); n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

func TestAnEventIsTheSameInEveryFormItComesIn(t *testing.T) {
	h := newHouse(t)
	tenant := newTenant()
	e := theme(tenant)
	h.keep("brand", cache.Tenant(tenant))
	binary := []string{"Ce-Id", "1", "Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", subjectThemePublished}
	if got := h.post(e.path, e.data(), binary...); got.Outcome != "done" || got.Removed != 1 {
		t.Errorf("binary: %+v", got)
	}
	structured := `{"specversion":"1.0","id":"2","source":"s","type":"x","datacontenttype":"application/json","data":` + e.data() + `}`
	if got := h.post(e.path, structured, "Content-Type", "application/cloudevents+json"); got.Outcome != "again" {
		t.Errorf("structured: %+v", got)
	}
	again := strings.Replace(e.data(), "12:00:00.100Z", "12:00:07.000Z", 1) // its producer published it twice
	if got := h.post(e.path, again, binary...); got.Outcome != "again" {
		t.Errorf("published again: %+v", got)
	}
	if got := h.deliver(e); got.Outcome != "again" {
		t.Errorf("pushed: %+v", got)
	}
}

func TestTheSameIdWithOtherWordsIsAnAlarm(t *testing.T) {
	h := newHouse(t)
	tenant, now := newTenant(), time.Now()
	e := suspension(tenant, now)
	h.done(e)
	forged := reinstatement(tenant, now.Add(time.Hour))
	forged.id = e.id
	for range 2 {
		got := h.deliver(forged)
		if got.Status != 200 || got.Outcome != "parked" || !got.Conflict || got.EventID != e.id {
			t.Errorf("%+v", got)
		}
		if record := h.logged(); record["severity"] != "ERROR" || record["alarm"] != "inbox-conflict" || record["outcome"] != "parked" {
			t.Errorf("%v", record)
		}
	}
	if !h.shown(tenant) || h.parked() != 1 {
		t.Errorf("suspended %v, %d parked", h.shown(tenant), h.parked())
	}
}

func TestWhatIsNoEventOfTheSubscriptionIsParked(t *testing.T) {
	h := newHouse(t)
	tenant := newTenant()
	good := suspension(tenant, time.Now())
	at := func(path string, e told) func() receipt {
		return func() receipt { return h.post(path, e.push("m-"+e.id)) }
	}
	n := 0
	data := func(text string) func() receipt {
		n++
		headers := []string{"Ce-Id", fmt.Sprint("c-", n), "Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", "x"}
		return func() receipt { return h.post("tenant-suspended", text, headers...) }
	}
	cases := map[string]struct {
		deliver func() receipt
		reason  string
	}{
		"no push":  {func() receipt { return h.post("tenant-suspended", "not JSON") }, "the push is not JSON, at byte 1"},
		"nothing":  {func() receipt { return h.post("tenant-suspended", "") }, "the body is empty"},
		"too much": {func() receipt { return h.post("tenant-suspended", strings.Repeat("x", 2<<20)) }, "the body is larger than 1048576 bytes"},
		"no data": {func() receipt {
			return h.post("tenant-suspended", `{"message":{"messageId":"1","attributes":{"a":"b"}}}`)
		}, "the message has no data"},
		"no JSON":           {data("nonsense"), "the data is no event: not JSON, at byte 1"},
		"no object":         {data("[]"), "the data is no event: wrong at /"},
		"no envelope":       {data(`{"payload":{}}`), "the event is wrong: the message: required"},
		"a bare payload":    {data(good.payload), "the event is wrong"},
		"no id":             {data(`{"envelope":{"subject":"` + subjectTenantSuspended + `"},"payload":` + good.payload + `}`), "the event is wrong: envelope"},
		"an id of no event": {data(strings.Replace(good.data(), "evt_", "evx_", 1)), "the event is wrong: envelope.eventId: pattern"},
		"a name twice":      {data(`{"envelope":{},"payload":{"a":1,"a":2}}`), "the data is no event: not JSON"},
		"another subject":   {at("tenant-suspended", theme(tenant)), "the event is of another subject than its subscription"},
		"no tenant":         {data(strings.Replace(good.data(), tenant, "tnt_1", 1)), "the event is wrong: payload.tenantId: pattern"},
		"no time":           {data(strings.Replace(good.data(), "suspendedAt", "suspended", 1)), "the event is wrong: payload: required"},
		"no such time":      {data(strings.Replace(good.data(), `"suspendedAt":"2`, `"suspendedAt":"x`, 1)), "the event is wrong: payload.suspendedAt: format"},
		"no leap second":    {data(`{"envelope":{"eventId":"` + good.id + `","subject":"` + subjectTenantSuspended + `"},"payload":{"tenantId":"` + tenant + `","suspendedAt":"2016-12-31T23:58:60Z"}}`), "the event is wrong: payload.suspendedAt"},
		"in two days":       {at("tenant-suspended", suspension(tenant, time.Now().Add(48*time.Hour))), "the event is wrong: payload.suspendedAt: more than a day ahead"},
		"a cell of no grid": {at("listing-indexed", listing(newProperty(), "h3:8fffffffffffff7")), "the event is wrong: payload.geoCell: not a cell"},
		"a cell too coarse": {at("listing-indexed", listing(newProperty(), "h3:85283083fffffff")), "the event is wrong: payload.geoCell: pattern"},
		"a listing nowhere": {at("listing-indexed", tell("listing-indexed", `{"propertyId":"`+newProperty()+`"}`)), "the event is wrong: payload: required"},
		"a theme of nobody": {at("theme-published", tell("theme-published", `{"tenantId":null}`)), "the event is wrong: payload.tenantId: type"},
		"an id Postgres not": {func() receipt {
			return h.post("tenant-suspended", `{"message":{"messageId":"a\u0000b","data":"eA=="}}`)
		}, "the data is no event"},
		"an id too long": {func() receipt {
			return h.post("tenant-suspended", `{"message":{"messageId":"`+strings.Repeat("ü", 5000)+`","data":"eA=="}}`)
		}, "the data is no event"},
	}
	for name, c := range cases {
		before := h.parked()
		for range 2 { // and again, because the acknowledgement was lost
			got := c.deliver()
			if got.Status != 200 || got.Outcome != "parked" || got.Conflict || !strings.HasPrefix(got.Reason, c.reason) {
				t.Errorf("%s: %+v, want %q", name, got, c.reason)
			}
		}
		if n := h.parked() - before; n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
		if record := h.logged(); record["severity"] != "ERROR" || record["alarm"] != "inbox-parked" || record["reason"] == "" {
			t.Errorf("%s: %v", name, record)
		}
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.inbox`) + read[int](h, `SELECT count(*) FROM bff_consumer.tenant_standing`); n != 0 {
		t.Errorf("%d traces of what had no effect", n)
	}
	if n := read[int](h, `SELECT max(length(body)) FROM bff_consumer.inbox_parked`); n != 64<<10 {
		t.Errorf("the longest body is %d bytes", n)
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.inbox_parked WHERE subscription = 'bff-consumer.tenant.suspended.v1'`); n == 0 {
		t.Error("the subscription is not named")
	}
}
