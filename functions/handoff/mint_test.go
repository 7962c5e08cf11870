package handoff

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

const initiatedSubject = "melmastoon.bff.consumer.handoff.initiated.v1"

func TestHandoffMint_SignsRecordsAndEmitsEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustMint(h.requestBodyWith(`"currency":"AFN","locale":"prs","sourceCampaign":{"source":"google","medium":"cpc","campaign":"spring-2026"}`),
		"Idempotency-Key", "k1", "Referer", "https://www.melmastoon.ghasi.io/search?city=kabul")
	if !strings.HasPrefix(a.URL, "https://kabul-grand.melmastoon.ghasi.io/book?h=") || a.TTLSeconds != 1800 {
		t.Errorf("got %s; want a URL of kabul-grand and 1800 s", a.Text)
	}
	for name, want := range map[string]string{
		"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer", "Idempotency-Replayed": "", "Content-Type": "application/json",
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.Header.Get(name); got != want {
				t.Errorf("got %q; want %q", got, want)
			}
		})
	}
	token, err := h.keys.Verify(a.token(t), h.Now())
	if err != nil {
		t.Fatal(err)
	}
	if token.ID != a.HandoffID || token.GuestSessionID != a.SessionCookie() || token.TenantID != tenantID(1) || token.PropertyID != propertyID(1) ||
		token.Currency != "AFN" || token.Locale != "fa-AF" || token.KeyID != "hmac-2026-11" ||
		token.ExpiresAt.Format("2006-01-02T15:04:05.000Z") != a.ExpiresAt {
		t.Errorf("got token %+v; want the values of %s", token, a.Text)
	}

	var row struct {
		session, currency, locale, key, campaign string
		ages                                     []int
		consumed                                 bool
		nights                                   int
	}
	err = h.DB.QueryRow(context.Background(), `
		SELECT guest_session_id, currency, locale, hmac_key_id, source_campaign ->> 'campaign', children_ages, consumed, check_out - check_in
		FROM bff_consumer.handoff_replay_log WHERE id = $1`, a.HandoffID).
		Scan(&row.session, &row.currency, &row.locale, &row.key, &row.campaign, &row.ages, &row.consumed, &row.nights)
	if err != nil {
		t.Fatal(err)
	}
	if row.session != a.SessionCookie() || row.currency != "AFN" || row.locale != "fa-AF" || row.key != "hmac-2026-11" ||
		row.campaign != "spring-2026" || len(row.ages) != 1 || row.ages[0] != 7 || row.consumed || row.nights != 3 {
		t.Errorf(`got %+v; want session = %v, currency = "AFN", locale = "fa-AF", key = "hmac-2026-11", campaign = "spring-2026", len(ages) = 1, ages[0] = 7, not consumed, nights = 3`, row, a.SessionCookie())
	}

	messages := h.Messages(initiatedSubject)
	if len(messages) != 1 {
		t.Fatalf("got %d events; want 1", len(messages))
	}
	if err := strict.ValidateMessage(initiatedSubject, messages[0]); err != nil {
		t.Error(err)
	}
	var decoded event.Event
	if err := json.Unmarshal(messages[0], &decoded); err != nil {
		t.Fatal(err)
	}
	p := decoded.Payload.(event.HandoffInitiated)
	want := event.HandoffInitiated{
		HandoffID: a.HandoffID, GuestSessionID: a.SessionCookie(), TenantID: tenantID(1), TenantSlug: "kabul-grand", PropertyID: propertyID(1),
		Dates:     event.Dates{CheckIn: token.Dates.CheckIn.String(), CheckOut: token.Dates.CheckOut.String()},
		Occupancy: event.Occupancy{Adults: 2, Children: 1, Rooms: 1, ChildrenAges: []int{7}},
		Currency:  "AFN", Locale: "fa-AF", SourceCampaign: &event.Campaign{Source: "google", Medium: "cpc", Campaign: "spring-2026"},
		MintedAt: token.MintedAt, ExpiresAt: token.ExpiresAt, HMACKeyID: "hmac-2026-11",
		FingerprintHash: p.FingerprintHash, IPHash: p.IPHash, OriginReferer: "https://www.melmastoon.ghasi.io/search",
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(messages[0]), a.token(t)) {
		t.Error("the event contains the token")
	}
}

func TestHandoffMint_DefaultsComeFromSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustMint(h.requestBody(), "Idempotency-Key", "k1", "Accept-Language", "ps-AF", "X-Currency", "PKR",
		"X-Campaign-Source", "google", "X-Campaign-Medium", "cpc")
	token, err := h.keys.Verify(a.token(t), h.Now())
	if err != nil || token.Locale != "ps-AF" || token.Currency != "PKR" {
		t.Errorf(`got %+v, %v; want err = nil, token.Locale = "ps-AF", token.Currency = "PKR"`, token, err)
	}
	var campaign string
	err = h.DB.QueryRow(context.Background(), `SELECT source_campaign::text FROM bff_consumer.handoff_replay_log`).Scan(&campaign)
	if err != nil || !strings.Contains(campaign, `"google"`) || !strings.Contains(campaign, `"capturedAt"`) {
		t.Errorf(`got %s, %v; want err = nil, campaign with "google" and "capturedAt"`, campaign, err)
	}
}

func TestHandoffMint_OptedOutGuestEmitsNoEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustMint(h.requestBody(), "Idempotency-Key", "k1", "DNT", "1")
	if n, rows := len(h.Messages(initiatedSubject)), h.Count("handoff_replay_log"); n != 0 || rows != 1 {
		t.Errorf("got %d events, %d rows; want 0 and 1", n, rows)
	}
}

// firstError returns field and code of the first fault of a problem.
func (a *response) firstError() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Field + " " + a.Errors[0].Code
}

func TestHandoffMint_InvalidRequestNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		field  string
	}{
		"no tenant":                  {h.requestBody(`"tenantId"`, `"tenant"`), 422, "VALIDATION_FAILED", "tenant unknown"},
		"a property for a tenant":    {h.requestBody(tenantID(1), propertyID(1)), 422, "VALIDATION_FAILED", "tenantId malformed"},
		"a tenant for a property":    {h.requestBody(propertyID(1), tenantID(1)), 422, "VALIDATION_FAILED", "propertyId malformed"},
		"a newline in an id":         {h.requestBody(tenantID(1), tenantID(1)[:29]+`\n`), 422, "VALIDATION_FAILED", "tenantId malformed"},
		"no adults":                  {h.requestBody(`"adults":2`, `"adults":0`), 422, "VALIDATION_FAILED", "occupancy.adults out-of-range"},
		"an age too many":            {h.requestBody(`[7]`, `[7,8]`), 422, "VALIDATION_FAILED", "occupancy.childrenAges count"},
		"a day in the past":          {h.requestBody(h.Now().AddDate(0, 0, 10).Format(time.DateOnly), h.Now().AddDate(0, 0, -1).Format(time.DateOnly)), 422, "VALIDATION_FAILED", "dates.checkIn past"},
		"an unknown currency":        {h.requestBodyWith(`"currency":"XAU"`), 422, "CURRENCY_NOT_SUPPORTED", "currency not-supported"},
		"an unknown locale":          {h.requestBodyWith(`"locale":"tlh"`), 422, "LOCALE_NOT_SUPPORTED", "locale not-supported"},
		"an address for a campaign":  {h.requestBodyWith(`"sourceCampaign":{"source":"a@b.example"}`), 422, "VALIDATION_FAILED", "sourceCampaign.source malformed"},
		"a campaign of long ago":     {h.requestBodyWith(`"sourceCampaign":{"capturedAt":"0000-01-01T00:00:00+23:59"}`), 422, "VALIDATION_FAILED", "sourceCampaign.capturedAt out-of-range"},
		"a campaign of the far":      {h.requestBodyWith(`"sourceCampaign":{"capturedAt":"9999-12-31T23:59:59-23:59"}`), 422, "VALIDATION_FAILED", "sourceCampaign.capturedAt out-of-range"},
		"a key id of the client's":   {h.requestBodyWith(`"hmacKeyId":"hmac-2026-11"`), 422, "VALIDATION_FAILED", "hmacKeyId unknown"},
		"not JSON":                   {`{`, 400, "MALFORMED_REQUEST", "body syntax"},
		"a number for the occupancy": {h.requestBody(`{"adults":2,"children":1,"rooms":1,"childrenAges":[7]}`, `2`), 422, "VALIDATION_FAILED", "occupancy type"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.post(c.body, "Idempotency-Key", "k1")
			if a.StatusCode != c.status || !strings.HasSuffix(a.Code, "."+c.code) || a.firstError() != c.field {
				t.Errorf("got %s; want status %v, code ending with %v, firstError() = %v", a.Text, c.status, "."+c.code, c.field)
			}
			if a.Header.Get("Set-Cookie") != "" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf(`got %v; want Set-Cookie = "", Cache-Control = "no-store"`, a.Header)
			}
		})
	}
	if n := h.Count("handoff_replay_log") + h.Count("idempotency_keys"); n != 0 {
		t.Errorf("got %d rows; want 0", n)
	}
}

func TestHandoffMint_PropertyMustBelongToTenant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.NotFound(propertyID(3))
	for name, c := range map[string]struct{ tenant, property string }{
		"another tenant's":     {tenantID(2), propertyID(1)},
		"unknown":              {tenantID(3), propertyID(3)},
		"unknown, second time": {tenantID(3), propertyID(3)},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.post(h.requestBody(tenantID(1), c.tenant, propertyID(1), c.property), "Idempotency-Key", "k1")
			if a.StatusCode != 404 || !strings.HasSuffix(a.Code, ".RESOURCE_NOT_FOUND") || !strings.Contains(a.Text, "no such hotel of this tenant") ||
				len(a.Errors) != 2 || a.Errors[0].Field+" "+a.Errors[0].Code != "propertyId not-found" || a.Errors[1].Field != "tenantId" {
				t.Errorf(`got %s; want status 404, code ending with ".RESOURCE_NOT_FOUND", body containing "no such hotel of this tenant", len(Errors) = 2, Errors[0].Field+" "+a.Errors[0].Code = "propertyId not-found", Errors[1].Field = "tenantId"`, a.Text)
			}
		})
	}
	if n := h.upstreams.Calls("property"); n != 2 {
		t.Errorf("got %d calls of property-service; want 2, because an absence is cached", n)
	}
	if n := h.Count("handoff_replay_log"); n != 0 {
		t.Errorf("got %d handoffs; want 0", n)
	}
}

func TestHandoffMint_SecondMintUsesCachedUpstreamData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	properties, brands := h.upstreams.Calls("property"), h.upstreams.Calls("theme")
	h.mustMint(h.requestBody(), guest...)
	if h.upstreams.Calls("property") != properties || h.upstreams.Calls("theme") != brands {
		t.Error("an upstream was called for cached data")
	}
}

func TestHandoffMint_UpstreamFailureFallsBackOrAnswers503(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failing string
		status  int
		slug    string
	}{
		"without theme-config":     {"theme", 201, "https://old-name."},
		"without property-service": {"property", 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.upstreams.Fail(c.failing)
			a := h.post(h.requestBody(), "Idempotency-Key", "k1")
			if a.StatusCode != c.status || !strings.HasPrefix(a.URL, c.slug) {
				t.Errorf("got %s; want status %v, URL beginning with %v", a.Text, c.status, c.slug)
			}
		})
	}
	h := newHarness(t)
	h.upstreams.NotFound(tenantID(1))
	if a := h.mustMint(h.requestBody(), "Idempotency-Key", "k1"); !strings.HasPrefix(a.URL, "https://old-name.") {
		t.Errorf("tenant without a brand: got %s; want the slug of property-service", a.Text)
	}
}

func TestHandoffMint_SuspendedTenantAnswers403(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	h.Suspend(tenantID(1))
	before := h.Count("handoff_replay_log")
	for range 2 {
		a := h.post(h.requestBody(), guest...)
		if a.StatusCode != 403 || !strings.HasSuffix(a.Code, ".TENANT_SUSPENDED") {
			t.Errorf(`got %s; want status 403, code ending with ".TENANT_SUSPENDED"`, a.Text)
		}
	}
	h.mustMint(h.requestBody(tenantID(1), tenantID(2), propertyID(1), propertyID(2)), "Idempotency-Key", "k2")
	if n := h.Count("handoff_replay_log"); n != before+1 {
		t.Errorf("got %d handoffs; want %d", n, before+1)
	}
}

// The suspension is recorded in Postgres but not in Redis. The transaction checks the record.
func TestHandoffMint_UnpublishedSuspensionAnswers403(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	h.RecordSuspension(tenantID(1))
	before := h.Count("handoff_replay_log") + h.Count("idempotency_keys") + len(h.Messages(initiatedSubject))
	a := h.post(h.requestBody(), guest...)
	if a.StatusCode != 403 || !strings.HasSuffix(a.Code, ".TENANT_SUSPENDED") {
		t.Errorf(`got %s; want status 403, code ending with ".TENANT_SUSPENDED"`, a.Text)
	}
	if n := h.Count("handoff_replay_log") + h.Count("idempotency_keys") + len(h.Messages(initiatedSubject)); n != before {
		t.Errorf("got %d rows more; want 0", n-before)
	}
}

func TestHandoffMint_UnknownSuspensionsAnswer503(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t))
	h.PostgresProxy.Break()
	h.Redis.Stop()
	a := h.post(h.requestBody(), "Idempotency-Key", "k1")
	if a.StatusCode != 503 || !strings.HasSuffix(a.Code, ".UPSTREAM_UNAVAILABLE") || a.Header.Get("Retry-After") == "" {
		t.Errorf(`got %s; want status 503, code ending with ".UPSTREAM_UNAVAILABLE", non-empty Retry-After`, a.Text)
	}
	h.PostgresProxy.Heal()
	if n := h.Count("handoff_replay_log"); n != 0 {
		t.Errorf("got %d handoffs; want 0", n)
	}
}

func TestHandoffMint_WithoutPostgresAnswers503(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t))
	guest := h.guestHeaders("k1")
	h.PostgresProxy.Break()
	a := h.post(h.requestBody(), guest...)
	if a.StatusCode != 503 || !strings.HasSuffix(a.Code, ".UPSTREAM_UNAVAILABLE") {
		t.Errorf(`got %s; want status 503, code ending with ".UPSTREAM_UNAVAILABLE"`, a.Text)
	}
	h.PostgresProxy.Heal()
	h.mustMint(h.requestBody(), guest...) // the claim was released
}

func TestHandoffMint_WithoutRedisMintsOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	before := h.Count("handoff_replay_log")
	h.Redis.Stop()
	first := h.mustMint(h.requestBody(), guest...)
	second := h.mustMint(h.requestBody(), guest...)
	if first.replayed() || !second.replayed() || first.Text != second.Text {
		t.Errorf("got %s\n%s; want the first not replayed, the second replayed with the same body", first.Text, second.Text)
	}
	if n := h.Count("handoff_replay_log"); n != before+1 {
		t.Errorf("got %d handoffs; want 1", n-before)
	}
}

func TestHandoffMint_KeyRotationKeepsTokensValid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mountWithKeys(retiredKey)
	old := h.mustMint(h.requestBody(), "Idempotency-Key", "k1").token(t)
	h.mountWithKeys(activeKey + "," + retiredKey)
	new := h.mustMint(h.requestBody(), "Idempotency-Key", "k2").token(t)
	grace, after := parseKeys(t, activeKey+","+retiredKey), parseKeys(t, activeKey)
	for name, c := range map[string]struct {
		keys  handoff.Keys
		token string
		ok    bool
	}{
		"the old token in grace": {grace, old, true}, "the new one": {grace, new, true},
		"the old token after grace": {after, old, false}, "the new one after": {after, new, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.keys.Verify(c.token, h.Now()); (err == nil) != c.ok {
				t.Errorf("got error %v; want valid = %t", err, c.ok)
			}
		})
	}
}

func TestHandoffMint_LogContainsNoSecrets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustMint(h.requestBody(), "Idempotency-Key", "the-key", "Referer", "https://www.melmastoon.ghasi.io/search")
	h.mustMint(h.requestBody(), "Cookie", "gms_id="+a.SessionCookie(), "Idempotency-Key", "the-key")
	h.post(h.requestBody(`"adults":2`, `"adults":99`), "Cookie", "gms_id="+a.SessionCookie(), "Idempotency-Key", "the-key")
	log := h.Log.String()
	token := a.token(t)
	for name, secret := range map[string]string{
		"the token": token, "its MAC": token[strings.Index(token, ".")+1:], "the cookie": a.SessionCookie(), "the key": "the-key",
		"the browser": "Firefox", "the address": "192.0.2.1", "the handoff": a.HandoffID,
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log contains %s", name)
		}
	}
	if n := strings.Count(log, "\n"); n != 3 {
		t.Errorf("got %d records for three requests; want 3", n)
	}
}
