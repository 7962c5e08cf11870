package telemetry

import (
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestTelemetry_CannotReportForAnotherGuest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	mine, other := h.newGuest(), h.newGuest()
	before := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", mine)
	for name, do := range map[string]func() *functest.Result{
		"by parameter": func() *functest.Result { return h.Do("POST", "/telemetry/click?gms_id="+mine, other, clickBody(1)) },
		"by header": func() *functest.Result {
			return h.Do("POST", "/telemetry/click", other, clickBody(1), "X-Guest-Session-Id", mine)
		},
		"by body": func() *functest.Result {
			return h.Do("POST", "/telemetry/click", other, clickBody(1, `,"guestSessionId":"`+mine+`"`))
		},
		"from another browser": func() *functest.Result {
			return h.Do("POST", "/telemetry/click", mine, clickBody(1), "User-Agent", functest.IPhone)
		},
		"with two cookies": func() *functest.Result {
			return h.Do("POST", "/telemetry/click", "", clickBody(1), "Cookie", "gms_id="+mine+"; gms_id="+mine)
		},
		"with a forged id": func() *functest.Result {
			return h.Do("POST", "/telemetry/click", id.New(id.Session, h.Now()), clickBody(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := name == "by body" || name == "by parameter"
			if a := do(); a.SessionCookie() == mine || (a.StatusCode == 422) != refused {
				t.Errorf("got %d %s; want a cookie other than %v, refused %t", a.StatusCode, a.Text, mine, refused)
			}
		})
	}
	if n := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", mine); n != before || len(h.recentlyViewed(mine)) != 0 {
		t.Errorf("got %d events of a guest who sent no report; want 0", n-before)
	}
}

func TestTelemetry_LogsAndEventsContainNoPersonalData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	headers := []string{"X-Forwarded-For", "203.0.113.77", "User-Agent", functest.Firefox + " canary-agent", "X-Client-Timezone", "canary/zone", "X-Client-Screen", "canary", "Referer", "https://canary.example/"}
	cookie := h.newGuest(headers...)
	for path, bodies := range map[string][]string{
		"page-view": {`{"path":"/u/canary@mail.example?q=canary","referer":"https://user:canary@example.com/canary@x?canary"}`, `{"path":"canary"}`},
		"funnel":    {`{"step":"map.opened","metadata":{"note":"canary 7"}}`, `{"step":"map.opened","metadata":{"canary-name":1}}`, `{"step":"canary"}`, `{"canary":1}`},
		"click":     {clickBody(1, `,"sortKey":"canary"`), clickBody(1, `,"eventId":"canary sentence"`), clickBody(1, `,"eventId":"canary-event-id"`)},
	} {
		for _, body := range bodies {
			h.Do("POST", "/telemetry/"+path, cookie, body, headers...)
		}
	}
	if n := len(h.Events("")); n != 4 {
		t.Errorf("got %d events; want 4", n)
	}
	for _, e := range h.Events("") {
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, canary := range []string{"canary", "203.0.113", "Firefox"} {
			if strings.Contains(string(text), canary) {
				t.Errorf("found %q in %s", canary, text)
			}
		}
	}
	for _, canary := range []string{"canary", "203.0.113", cookie, "Firefox", propertyID(1)} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("found %q in the log", canary)
		}
	}
}

func TestTelemetry_MalformedReportNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	before := len(h.Events(""))
	click := func(old, new string) string { return strings.Replace(clickBody(1), old, new, 1) }
	var many []string
	for n := range 51 {
		many = append(many, clickBody(n))
	}
	table := []struct{ path, body, field string }{
		{"click", "", "body"}, {"click", "null", "body"}, {"click", "[]", "body"}, {"click", "[" + clickBody(1) + "]", "body"}, {"click", `"x"`, "body"},
		{"click", "{}", "kind"}, {"click", clickBody(1)[:30], ""}, {"click", clickBody(1) + clickBody(2), ""}, {"click", "{'kind':'x'}", ""},
		{"click", click("listing-card", "basket"), "kind"}, {"click", click(`"listing-card"`, "null"), "kind"}, {"click", click(`"listing-card"`, "1"), "kind"},
		{"click", click(tenantID(1), "tnt_1"), "tenantId"}, {"click", click(`"tenantId":"`+tenantID(1)+`",`, ""), "tenantId"},
		{"click", click(propertyID(1), tenantID(1)), "propertyId"}, {"click", click(propertyID(1), strings.ToLower("PPT_"+strings.Repeat("A", 26))), "propertyId"},
		{"click", clickBody(1, `,"position":0`), "position"}, {"click", clickBody(1, `,"position":-1`), "position"}, {"click", clickBody(1, `,"position":10001`), "position"},
		{"click", clickBody(1, `,"position":1.5`), "position"}, {"click", clickBody(1, `,"position":"3"`), "position"}, {"click", clickBody(1, `,"position":1e99`), "position"},
		{"click", clickBody(1, `,"page":0`), "page"}, {"click", clickBody(1, `,"sortKey":"cheapest"`), "sortKey"},
		{"click", clickBody(1, `,"searchSessionId":"srs_x"`), "searchSessionId"}, {"click", clickBody(1, `,"searchSessionId":"`+cookie+`"`), "searchSessionId"},
		{"click", clickBody(1, `,"occurredAt":"yesterday"`), "occurredAt"}, {"click", clickBody(1, `,"occurredAt":1700000000}`), ""},
		{"click", clickBody(1, `,"occurredAt":"2026-02-30T00:00:00Z"`), "occurredAt"}, {"click", clickBody(1, `,"occurredAt":"2026-01-01"`), "occurredAt"},
		{"click", clickBody(1, `,"eventId":"short"`), "eventId"}, {"click", clickBody(1, `,"eventId":"`+strings.Repeat("x", 65)+`"`), "eventId"},
		{"click", clickBody(1, `,"eventId":"with spaces"`), "eventId"}, {"click", clickBody(1, `,"eventId":"'; DROP TABLE"`), "eventId"}, {"click", clickBody(1, `,"eventId":"ک۱۲۳۴۵۶۷۸"`), "eventId"},
		{"click", clickBody(1, `,"guestSessionId":"`+cookie+`"`), "guestSessionId"}, {"click", clickBody(1, `,"Kind":"map-pin"`), "Kind"},
		{"click", clickBody(1, `,"kind":"map-pin"`), "kind"}, {"click", batchBody(), "events"}, {"click", batchBody(many...), "events"},
		{"click", `{"events":null}`, "events"}, {"click", `{"events":{}}`, "events"}, {"click", `{"events":[null]}`, "events.0"}, {"click", `{"events":[7]}`, "events.0"},
		{"click", `{"events":[{}]}`, "events.0.kind"}, {"click", batchBody(clickBody(1), batchBody(clickBody(2))), "events.1.events"},
		{"click", clickBody(1, `,"events":[`+clickBody(2)+`]`), "events"}, {"click", batchBody(clickBody(1, `,"position":0`)), "events.0.position"},
		{"click", clickBody(1, `,"eventId":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)), ""}, {"click", clickBody(1, `,"eventId":"`+strings.Repeat("x", 70<<10)+`"`), ""},
		{"page-view", "{}", "path"}, {"page-view", `{"path":""}`, "path"}, {"page-view", `{"path":"search"}`, "path"}, {"page-view", `{"path":"https://evil.example/"}`, "path"},
		{"page-view", `{"path":"//evil.example/"}`, "path"}, {"page-view", `{"path":"javascript:alert(1)"}`, "path"}, {"page-view", `{"path":"/a\u0000b"}`, "path"},
		{"page-view", `{"path":"/a\nb"}`, "path"}, {"page-view", `{"path":"/` + strings.Repeat("x", 3_000) + `"}`, "path"}, {"page-view", `{"path":7}`, "path"},
		{"page-view", `{"path":"/","referer":7}`, "referer"}, {"page-view", `{"path":"/","referer":"` + strings.Repeat("x", 3_000) + `"}`, "referer"},
		{"page-view", `{"path":"/","propertyId":"ppt_x"}`, "propertyId"}, {"page-view", `{"path":"/","tenantId":"ppt_x"}`, "tenantId"},
		{"page-view", `{"path":"/","viewedAt":"x"}`, "viewedAt"}, {"page-view", `{"path":"/","userAgentHash":"x"}`, "userAgentHash"}, {"page-view", "{\"path\":\"/\xff\"}", "path"},
		{"funnel", "{}", "step"}, {"funnel", `{"step":"booked"}`, "step"}, {"funnel", `{"step":["map.opened"]}`, "step"},
		{"funnel", `{"step":"map.opened","metadata":[]}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":"x"}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":null}}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":{"a":{}}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":[1]}}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":{"a":1.5}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":-1}}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":{"a":93701234567}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":"Ahmad Rahimi"}}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":{"a":"a@b.af"}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a b":1}}`, "metadata"}, {"funnel", `{"step":"map.opened","metadata":{"":1}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}`, "metadata"},
		{"funnel", `{"step":"map.opened","metadata":{"a":1,"a":2}}`, "metadata.a"}, {"funnel", `{"step":"map.opened","metadata":{"a":1e400}}`, ""},
	}
	for _, c := range table {
		a := h.Do("POST", "/telemetry/"+c.path, cookie, c.body, "Content-Type", "text/plain;charset=UTF-8")
		named := slices.ContainsFunc(a.Errors, func(e struct{ Field, Code, Detail string }) bool {
			return e.Field != "" && (c.field == "" || e.Field == c.field)
		})
		if a.StatusCode < 400 || a.StatusCode > 499 || !named {
			t.Errorf("%s %.80s: got %d %s; want 4xx that names the field", c.path, c.body, a.StatusCode, a.Text)
		}
	}
	if n := len(h.Events("")); n != before || len(h.recentlyViewed(cookie)) != 0 {
		t.Errorf("got %d events; want 0", n-before)
	}
}
