package invalidate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

const testCell = "h3:8a283082aa67fff"

func parentCell(t *testing.T, res int) string {
	t.Helper()
	c, err := geo.ParseCell(testCell)
	if err != nil {
		t.Fatal(err)
	}
	return c.Parent(res).String()
}

func TestThemePublished_InvalidatesOnlyItsTenant(t *testing.T) {
	h := newHarness(t)
	tenant, other := newTenantID(), newTenantID()
	h.addCacheEntry("brand", cache.TenantTag(tenant))
	h.addCacheEntry("page", cache.TenantTag(other), cache.TenantTag(tenant), cache.PropertyTag(newPropertyID()), cache.CellTag(testCell))
	h.addCacheEntry("others", cache.TenantTag(other), cache.CellTag(testCell))
	e := themeEvent(tenant)
	if got := h.mustProcess(e); got.Removed != 2 || got.EventID != e.id || !h.isProcessed(e) {
		t.Errorf("%+v", got)
	}
	if h.cacheState("brand") != cache.Miss || h.cacheState("page") != cache.Miss || h.cacheState("others") != cache.Hit {
		t.Errorf("brand %s, page %s, others %s", h.cacheState("brand"), h.cacheState("page"), h.cacheState("others"))
	}
	record := h.lastLogRecord()
	if record["outcome"] != "done" || record["eventId"] != e.id || record["removed"] != 2.0 || record["attempt"] != 2.0 || record["severity"] != "INFO" {
		t.Errorf("%v", record)
	}
	h.addCacheEntry("brand", cache.TenantTag(tenant))
	if got := h.mustProcess(e); got.Outcome != "again" || got.Removed != 0 || h.cacheState("brand") != cache.Hit {
		t.Errorf("told twice: %+v", got)
	}
}

func TestListingIndexed_InvalidatesPropertyAndAncestorCells(t *testing.T) {
	h := newHarness(t)
	property := newPropertyID()
	for name, tags := range map[string][]string{
		"detail": {cache.PropertyTag(property), cache.TenantTag(newTenantID())}, "anywhere": {cache.UnknownAreaTag},
		"district": {cache.CellTag(parentCell(t, 8))}, "city": {cache.CellTag(parentCell(t, 5)), cache.CellTag("h3:842f2cdffffffff")},
		"world": {cache.CellTag(parentCell(t, 0))}, "cell": {cache.CellTag(testCell)},
		"elsewhere": {cache.CellTag("h3:842f2cdffffffff")}, "other": {cache.PropertyTag(newPropertyID())},
	} {
		h.addCacheEntry(name, tags...)
	}
	if got := h.mustProcess(listingEvent(property, testCell)); got.Removed != 6 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]cache.State{
		"detail": cache.Miss, "anywhere": cache.Miss, "district": cache.Miss, "city": cache.Miss, "world": cache.Miss, "cell": cache.Miss,
		"elsewhere": cache.Hit, "other": cache.Hit,
	} {
		if got := h.cacheState(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestTenantSuspended_IsUndoneByReinstatement(t *testing.T) {
	h := newHarness(t)
	tenant, other, now := newTenantID(), newTenantID(), time.Now()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	h.addCacheEntry("others", cache.TenantTag(other))
	if got := h.mustProcess(suspendedEvent(tenant, now)); got.Removed != 1 || h.cacheState("others") != cache.Hit || !h.isSuspended(tenant) || h.isSuspended(other) {
		t.Errorf("suspended: %+v", got)
	}
	if record := h.lastLogRecord(); record["suspended"] != true {
		t.Errorf("%v", record)
	}
	reason := queryValue[string](h, `SELECT reason FROM bff_consumer.tenant_suspended_cache WHERE suspended_at = $1`, now.Truncate(time.Millisecond))
	if reason != "billing-overdue" {
		t.Errorf("reason %s", reason)
	}
	h.addCacheEntry("page", cache.TenantTag(tenant))
	if got := h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second))); got.Removed != 1 || h.cacheState("others") != cache.Hit || h.isSuspended(tenant) {
		t.Errorf("reinstated: %+v", got)
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache`); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestTenantSuspended_ReasonIsOptional(t *testing.T) {
	h := newHarness(t)
	for name, reason := range map[string]string{"unspecified": ``, "ab": `,"reason":"a\u0000b"`, "later": `,"reason":"later","newField":{"a":[1]}`} {
		tenant := newTenantID()
		h.mustProcess(newPlatformEvent("tenant-suspended", `{"tenantId":"`+tenant+`","suspendedAt":"2020-11-20T12:00:00+04:30"`+reason+`}`))
		if !h.isSuspended(tenant) {
			t.Errorf("%s is not suspended", name)
		}
		if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache WHERE reason = $1 AND suspended_at = '2020-11-20T07:30:00Z'`, name); n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

func TestInvalidateReceive_DeduplicatesAcrossEncodings(t *testing.T) {
	h := newHarness(t)
	tenant := newTenantID()
	e := themeEvent(tenant)
	h.addCacheEntry("brand", cache.TenantTag(tenant))
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

func TestInvalidateReceive_ConflictingEventIDMarksAlert(t *testing.T) {
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	e := suspendedEvent(tenant, now)
	h.mustProcess(e)
	forged := reinstatedEvent(tenant, now.Add(time.Hour))
	forged.id = e.id
	for range 2 {
		got := h.deliver(forged)
		if got.Status != 200 || got.Outcome != "parked" || !got.Conflict || got.EventID != e.id {
			t.Errorf("%+v", got)
		}
		if record := h.lastLogRecord(); record["severity"] != "ERROR" || record["alarm"] != "inbox-conflict" || record["outcome"] != "parked" {
			t.Errorf("%v", record)
		}
	}
	if !h.isSuspended(tenant) || h.countQuarantined() != 1 {
		t.Errorf("suspended %v, %d parked", h.isSuspended(tenant), h.countQuarantined())
	}
}

func TestInvalidateReceive_QuarantinesInvalidMessages(t *testing.T) {
	h := newHarness(t)
	tenant := newTenantID()
	good := suspendedEvent(tenant, time.Now())
	at := func(path string, e platformEvent) func() response {
		return func() response { return h.post(path, e.pushBody("m-"+e.id)) }
	}
	n := 0
	data := func(text string) func() response {
		n++
		headers := []string{"Ce-Id", fmt.Sprint("c-", n), "Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", "x"}
		return func() response { return h.post("tenant-suspended", text, headers...) }
	}
	cases := map[string]struct {
		deliver func() response
		reason  string
	}{
		"no push":  {func() response { return h.post("tenant-suspended", "not JSON") }, "the push is invalid JSON at byte 1"},
		"nothing":  {func() response { return h.post("tenant-suspended", "") }, "the body is empty"},
		"too much": {func() response { return h.post("tenant-suspended", strings.Repeat("x", 2<<20)) }, "the body is larger than 1048576 bytes"},
		"no data": {func() response {
			return h.post("tenant-suspended", `{"message":{"messageId":"1","attributes":{"a":"b"}}}`)
		}, "the message has no data"},
		"no JSON":           {data("nonsense"), "the data is not an event: invalid JSON at byte 1"},
		"no object":         {data("[]"), "the data is not an event: invalid at /"},
		"no envelope":       {data(`{"payload":{}}`), "the event is invalid: the message: required"},
		"a bare payload":    {data(good.payload), "the event is invalid"},
		"no id":             {data(`{"envelope":{"subject":"` + subjectTenantSuspended + `"},"payload":` + good.payload + `}`), "the event is invalid: envelope"},
		"an id of no event": {data(strings.Replace(good.data(), "evt_", "evx_", 1)), "the event is invalid: envelope.eventId: pattern"},
		"a name twice":      {data(`{"envelope":{},"payload":{"a":1,"a":2}}`), "the data is not an event: invalid JSON"},
		"another subject":   {at("tenant-suspended", themeEvent(tenant)), "the event has another subject than the subscription"},
		"no tenant":         {data(strings.Replace(good.data(), tenant, "tnt_1", 1)), "the event is invalid: payload.tenantId: pattern"},
		"no time":           {data(strings.Replace(good.data(), "suspendedAt", "suspended", 1)), "the event is invalid: payload: required"},
		"no such time":      {data(strings.Replace(good.data(), `"suspendedAt":"2`, `"suspendedAt":"x`, 1)), "the event is invalid: payload.suspendedAt: format"},
		"no leap second":    {data(`{"envelope":{"eventId":"` + good.id + `","subject":"` + subjectTenantSuspended + `"},"payload":{"tenantId":"` + tenant + `","suspendedAt":"2016-12-31T23:58:60Z"}}`), "the event is invalid: payload.suspendedAt"},
		"in two days":       {at("tenant-suspended", suspendedEvent(tenant, time.Now().Add(48*time.Hour))), "the event is invalid: payload.suspendedAt: more than a day ahead"},
		"a cell of no grid": {at("listing-indexed", listingEvent(newPropertyID(), "h3:8fffffffffffff7")), "the event is invalid: payload.geoCell: not a cell"},
		"a cell too coarse": {at("listing-indexed", listingEvent(newPropertyID(), "h3:85283083fffffff")), "the event is invalid: payload.geoCell: pattern"},
		"a listing nowhere": {at("listing-indexed", newPlatformEvent("listing-indexed", `{"propertyId":"`+newPropertyID()+`"}`)), "the event is invalid: payload: required"},
		"a theme of nobody": {at("theme-published", newPlatformEvent("theme-published", `{"tenantId":null}`)), "the event is invalid: payload.tenantId: type"},
		"an id Postgres not": {func() response {
			return h.post("tenant-suspended", `{"message":{"messageId":"a\u0000b","data":"eA=="}}`)
		}, "the data is not an event"},
		"an id too long": {func() response {
			return h.post("tenant-suspended", `{"message":{"messageId":"`+strings.Repeat("ü", 5000)+`","data":"eA=="}}`)
		}, "the data is not an event"},
	}
	for name, c := range cases {
		before := h.countQuarantined()
		for range 2 { // and again, because the acknowledgement was lost
			got := c.deliver()
			if got.Status != 200 || got.Outcome != "parked" || got.Conflict || !strings.HasPrefix(got.Reason, c.reason) {
				t.Errorf("%s: %+v, want %q", name, got, c.reason)
			}
		}
		if n := h.countQuarantined() - before; n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
		if record := h.lastLogRecord(); record["severity"] != "ERROR" || record["alarm"] != "inbox-parked" || record["reason"] == "" {
			t.Errorf("%s: %v", name, record)
		}
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.inbox`) + queryValue[int](h, `SELECT count(*) FROM bff_consumer.tenant_standing`); n != 0 {
		t.Errorf("%d traces of what had no effect", n)
	}
	if n := queryValue[int](h, `SELECT max(length(body)) FROM bff_consumer.inbox_parked`); n != 64<<10 {
		t.Errorf("the longest body is %d bytes", n)
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.inbox_parked WHERE subscription = 'bff-consumer.tenant.suspended.v1'`); n == 0 {
		t.Error("the subscription is not named")
	}
}
