package session

import (
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestSession_LogsAndEventsContainNoPersonalData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	headers := []string{"X-Forwarded-For", "203.0.113.77", "User-Agent", functest.Firefox + " canary-agent", "X-Client-Timezone", "canary/zone", "X-Campaign-Name", "canary sentence"}
	cookie := h.newGuest(headers...)
	for _, c := range [][3]string{
		{"POST", "/session/locale", `{"locale":"ar"}`}, {"POST", "/session/locale", `{"locale":"canary"}`}, {"POST", "/session/currency", `{"canary":"AED"}`},
		{"GET", "/session?canary=1", ""}, {"GET", "/session/export", ""}, {"POST", "/session/clear", ""},
	} {
		h.Do(c[0], c[1], cookie, c[2], headers...)
	}
	for _, e := range h.Events("") {
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "canary") || strings.Contains(string(text), "203.0.113") {
			t.Errorf("got %s; want no canary and no address", text)
		}
	}
	for _, canary := range []string{"canary", "203.0.113", cookie, "Firefox"} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("found %q in the log", canary)
		}
	}
}

func TestSession_MalformedRequestNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for _, c := range []struct {
		path, body, field string
		status            int
	}{
		{"locale", "", "body", 400}, {"locale", "null", "body", 422}, {"locale", "[]", "body", 422}, {"locale", `"ar"`, "body", 422},
		{"locale", "{}", "locale", 422}, {"locale", `{"locale":""}`, "locale", 422}, {"locale", `{"locale":null}`, "locale", 422},
		{"locale", `{"locale":7}`, "locale", 422}, {"locale", `{"locale":["ar"]}`, "locale", 422}, {"locale", `{"locale":"de"}`, "locale", 422},
		{"locale", `{"locale":"ar","locale":"fr"}`, "locale", 400}, {"locale", `{"locale":"ar","currency":"AFN"}`, "currency", 422},
		{"locale", `{"Locale":"ar"}`, "Locale", 422}, {"locale", `{"locale":"ar"`, "body", 400}, {"locale", `{"locale":"ar"}{}`, "body", 400},
		{"locale", `{"locale":"` + strings.Repeat("a", 3_000) + `"}`, "locale", 422}, {"locale", `{"locale":"ar-u-x-\u0000"}`, "locale", 422},
		{"locale", `{"locale":"../../etc"}`, "locale", 422}, {"locale", "{\"locale\":\"\xff\"}", "locale", 400},
		{"currency", "{}", "currency", 422}, {"currency", `{"currency":"afn"}`, "currency", 422}, {"currency", `{"currency":"JPY"}`, "currency", 422},
		{"currency", `{"currency":"AFN "}`, "currency", 422}, {"currency", `{"currency":971}`, "currency", 422}, {"currency", `{"currency":{}}`, "currency", 422},
		{"currency", `{"currency":"€"}`, "currency", 422}, {"currency", "", "body", 400},
		{"consent", "", "body", 400}, {"consent", "{}", "body", 422}, {"consent", `{"consentTelemetry":"false"}`, "consentTelemetry", 422},
		{"consent", `{"consentTelemetry":0}`, "consentTelemetry", 422}, {"consent", `{"consentMarketing":[]}`, "consentMarketing", 422},
		{"consent", `{"consentTelemetry":null}`, "body", 422}, {"consent", `{"consent":false}`, "consent", 422},
		{"consent", `{"consentTelemetry":false,"guestSessionId":"` + cookie + `"}`, "guestSessionId", 422},
		{"consent", `{"consentTelemetry":NaN}`, "consentTelemetry", 400},
	} {
		a := h.Do("POST", "/session/"+c.path, cookie, c.body, "Content-Type", "application/json")
		named := slices.ContainsFunc(a.Errors, func(e struct{ Field, Code, Detail string }) bool { return e.Field == c.field })
		if a.StatusCode < 400 || a.StatusCode > 499 || !named {
			t.Errorf("%s %.60s: got %d %s; want 4xx that names the field", c.path, c.body, a.StatusCode, a.Text)
		}
	}
	if a := h.Do("GET", "/session", cookie, "", "X-Currency", "XXX"); a.StatusCode != 422 || a.Errors[0].Field != "X-Currency" {
		t.Errorf(`got %d %s; want status 422, Errors[0].Field = "X-Currency"`, a.StatusCode, a.Text)
	}
	if s := h.getSession(cookie); s.LocalePreference != "en" || s.CurrencyPreference != "USD" || !s.Flags.ConsentTelemetry {
		t.Errorf("after refused requests: got %+v; want it unchanged", s)
	}
	if n := len(h.Events("changed")); n != 0 {
		t.Errorf("got %d events; want 0", n)
	}
}
