package invalidate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
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
	t.Parallel()
	h := newHarness(t)
	tenant, other := newTenantID(), newTenantID()
	h.addCacheEntry("brand", cache.TenantTag(tenant))
	h.addCacheEntry("page", cache.TenantTag(other), cache.TenantTag(tenant), cache.PropertyTag(newPropertyID()), cache.CellTag(testCell))
	h.addCacheEntry("others", cache.TenantTag(other), cache.CellTag(testCell))
	e := themeEvent(tenant)
	if got := h.mustProcess(e); got.Removed != 2 || got.EventID != e.ID || !h.IsProcessed(e.ID) {
		t.Errorf("got %+v, want 2 removed entries and event %s processed", got, e.ID)
	}
	h.expectCacheState("brand", cache.Miss)
	h.expectCacheState("page", cache.Miss)
	h.expectCacheState("others", cache.Hit)
	h.expectLogRecord(map[string]any{"outcome": "done", "eventId": e.ID, "removed": 2.0, "attempt": 2.0, "severity": "INFO"})
	h.addCacheEntry("brand", cache.TenantTag(tenant))
	if got := h.mustProcess(e); got.Outcome != "again" || got.Removed != 0 || h.cacheState("brand") != cache.Hit {
		t.Errorf("second delivery: got %+v, want outcome again and no effect", got)
	}
}

func TestListingIndexed_InvalidatesPropertyAndAncestorCells(t *testing.T) {
	t.Parallel()
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
		t.Errorf("got %d removed entries, want 6", got.Removed)
	}
	for name, want := range map[string]cache.State{
		"detail": cache.Miss, "anywhere": cache.Miss, "district": cache.Miss, "city": cache.Miss, "world": cache.Miss, "cell": cache.Miss,
		"elsewhere": cache.Hit, "other": cache.Hit,
	} {
		h.expectCacheState(name, want)
	}
}

func TestTenantSuspended_IsUndoneByReinstatement(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, other, now := newTenantID(), newTenantID(), time.Now()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	h.addCacheEntry("others", cache.TenantTag(other))
	if got := h.mustProcess(suspendedEvent(tenant, now)); got.Removed != 1 {
		t.Errorf("suspended: got %d removed entries, want 1", got.Removed)
	}
	h.expectCacheState("others", cache.Hit)
	h.expectSuspended(tenant, true)
	h.expectSuspended(other, false)
	h.expectLogRecord(map[string]any{"suspended": true})
	reason := queryValue[string](h, `SELECT reason FROM bff_consumer.tenant_suspended_cache WHERE suspended_at = $1`, now.Truncate(time.Millisecond))
	if reason != "billing-overdue" {
		t.Errorf("got the reason %s, want billing-overdue", reason)
	}
	h.addCacheEntry("page", cache.TenantTag(tenant))
	if got := h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second))); got.Removed != 1 {
		t.Errorf("reinstated: got %d removed entries, want 1", got.Removed)
	}
	h.expectCacheState("others", cache.Hit)
	h.expectSuspended(tenant, false)
	if n := h.Count(`tenant_suspended_cache`); n != 0 {
		t.Errorf("got %d rows of suspended tenants, want none", n)
	}
}

func TestTenantSuspended_ReasonIsOptional(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, reason := range map[string]string{"unspecified": ``, "ab": `,"reason":"a\u0000b"`, "later": `,"reason":"later","newField":{"a":[1]}`} {
		tenant := newTenantID()
		h.mustProcess(functest.NewPlatformEvent(subjectTenantSuspended, `{"tenantId":"`+tenant+`","suspendedAt":"2020-11-20T12:00:00+04:30"`+reason+`}`))
		h.expectSuspended(tenant, true)
		if n := h.Count(`tenant_suspended_cache WHERE reason = $1 AND suspended_at = '2020-11-20T07:30:00Z'`, name); n != 1 {
			t.Errorf("reason %s: got %d rows, want 1", name, n)
		}
	}
}

func TestInvalidateReceive_DeduplicatesAcrossEncodings(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant := newTenantID()
	e := themeEvent(tenant)
	h.addCacheEntry("brand", cache.TenantTag(tenant))
	binary := []string{"Ce-Id", "1", "Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", subjectThemePublished}
	if got := h.post(paths[e.Subject], e.Data(), binary...); got.Outcome != "done" || got.Removed != 1 {
		t.Errorf("binary: got %+v, want outcome done and 1 removed entry", got)
	}
	structured := `{"specversion":"1.0","id":"2","source":"s","type":"x","datacontenttype":"application/json","data":` + e.Data() + `}`
	if got := h.post(paths[e.Subject], structured, "Content-Type", "application/cloudevents+json"); got.Outcome != "again" {
		t.Errorf("structured: got %+v, want outcome again", got)
	}
	republished := strings.Replace(e.Data(), "12:00:00.100Z", "12:00:07.000Z", 1)
	if got := h.post(paths[e.Subject], republished, binary...); got.Outcome != "again" {
		t.Errorf("published again: got %+v, want outcome again", got)
	}
	if got := h.deliver(e); got.Outcome != "again" {
		t.Errorf("push: got %+v, want outcome again", got)
	}
}

func TestInvalidateReceive_ConflictingEventIDMarksAlert(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	e := suspendedEvent(tenant, now)
	h.mustProcess(e)
	forged := reinstatedEvent(tenant, now.Add(time.Hour))
	forged.ID = e.ID
	for range 2 {
		got := h.deliver(forged)
		if got.Status != 200 || got.Outcome != "parked" || !got.Conflict || got.EventID != e.ID {
			t.Errorf("got %+v, want 200, outcome parked and a conflict of %s", got, e.ID)
		}
		h.expectLogRecord(map[string]any{"severity": "ERROR", "alarm": "inbox-conflict", "outcome": "parked"})
	}
	h.expectSuspended(tenant, true)
	if n := h.Quarantined(); n != 1 {
		t.Errorf("got %d quarantined messages, want 1", n)
	}
}

func TestInvalidateReceive_QuarantinesInvalidMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant := newTenantID()
	good := suspendedEvent(tenant, time.Now())
	at := func(path string, e functest.PlatformEvent) func() response {
		return func() response { return h.deliverTo(path, e) }
	}
	n := 0
	data := func(text string) func() response {
		n++
		headers := []string{"Ce-Id", fmt.Sprint("c-", n), "Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", "x"}
		return func() response { return h.post(suspendedPath, text, headers...) }
	}
	cases := map[string]struct {
		deliver func() response
		reason  string
	}{
		"not a push": {func() response { return h.post(suspendedPath, "not JSON") }, "the push is invalid JSON at byte 1"},
		"empty body": {func() response { return h.post(suspendedPath, "") }, "the body is empty"},
		"large body": {func() response { return h.post(suspendedPath, strings.Repeat("x", 2<<20)) }, "the body is larger than 1048576 bytes"},
		"no data": {func() response {
			return h.post(suspendedPath, `{"message":{"messageId":"1","attributes":{"a":"b"}}}`)
		}, "the message has no data"},
		"invalid JSON":              {data("nonsense"), "the data is not an event: invalid JSON at byte 1"},
		"a list":                    {data("[]"), "the data is not an event: invalid at /"},
		"no envelope":               {data(`{"payload":{}}`), "the event is invalid: the message: required"},
		"a bare payload":            {data(good.Payload), "the event is invalid"},
		"no id":                     {data(`{"envelope":{"subject":"` + subjectTenantSuspended + `"},"payload":` + good.Payload + `}`), "the event is invalid: envelope"},
		"an id with another prefix": {data(strings.Replace(good.Data(), "evt_", "evx_", 1)), "the event is invalid: envelope.eventId: pattern"},
		"a duplicate name":          {data(`{"envelope":{},"payload":{"a":1,"a":2}}`), "the data is not an event: invalid JSON"},
		"another subject":           {at(suspendedPath, themeEvent(tenant)), "the event has another subject than the subscription"},
		"no tenant":                 {data(strings.Replace(good.Data(), tenant, "tnt_1", 1)), "the event is invalid: payload.tenantId: pattern"},
		"no time":                   {data(strings.Replace(good.Data(), "suspendedAt", "suspended", 1)), "the event is invalid: payload: required"},
		"an invalid time":           {data(strings.Replace(good.Data(), `"suspendedAt":"2`, `"suspendedAt":"x`, 1)), "the event is invalid: payload.suspendedAt: format"},
		"an invalid leap second":    {data(`{"envelope":{"eventId":"` + good.ID + `","subject":"` + subjectTenantSuspended + `"},"payload":{"tenantId":"` + tenant + `","suspendedAt":"2016-12-31T23:58:60Z"}}`), "the event is invalid: payload.suspendedAt"},
		"in two days":               {at(suspendedPath, suspendedEvent(tenant, time.Now().Add(48*time.Hour))), "the event is invalid: payload.suspendedAt: more than a day ahead"},
		"an invalid cell":           {at(listingPath, listingEvent(newPropertyID(), "h3:8fffffffffffff7")), "the event is invalid: payload.geoCell: not a cell"},
		"a coarse cell":             {at(listingPath, listingEvent(newPropertyID(), "h3:85283083fffffff")), "the event is invalid: payload.geoCell: pattern"},
		"a listing without a cell":  {at(listingPath, functest.NewPlatformEvent(subjectListingIndexed, `{"propertyId":"`+newPropertyID()+`"}`)), "the event is invalid: payload: required"},
		"a theme without tenant":    {at(themePath, functest.NewPlatformEvent(subjectThemePublished, `{"tenantId":null}`)), "the event is invalid: payload.tenantId: type"},
		"a message id with NUL": {func() response {
			return h.post(suspendedPath, `{"message":{"messageId":"a\u0000b","data":"eA=="}}`)
		}, "the data is not an event"},
		"a long message id": {func() response {
			return h.post(suspendedPath, `{"message":{"messageId":"`+strings.Repeat("ü", 5000)+`","data":"eA=="}}`)
		}, "the data is not an event"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := h.Quarantined()
			for range 2 { // the second delivery follows a lost acknowledgement
				got := c.deliver()
				if got.Status != 200 || got.Outcome != "parked" || got.Conflict || !strings.HasPrefix(got.Reason, c.reason) {
					t.Errorf("got %+v, want 200, outcome parked and reason %q", got, c.reason)
				}
			}
			if n := h.Quarantined() - before; n != 1 {
				t.Errorf("got %d quarantined messages, want 1", n)
			}
			if record := h.Log.Last(t); record["severity"] != "ERROR" || record["alarm"] != "inbox-parked" || record["reason"] == "" {
				t.Errorf("log record: got %v, want an error with alarm inbox-parked and a reason", record)
			}
		})
	}
	if n := h.Count(`inbox`) + h.Count(`tenant_standing`); n != 0 {
		t.Errorf("got %d rows of effects, want none", n)
	}
	if n := queryValue[int](h, `SELECT max(length(body)) FROM bff_consumer.inbox_parked`); n != 64<<10 {
		t.Errorf("longest stored body: got %d bytes, want %d", n, 64<<10)
	}
	if n := h.Count(`inbox_parked WHERE subscription = 'bff-consumer.tenant.suspended.v1'`); n == 0 {
		t.Error("got no row with the name of the subscription")
	}
}
