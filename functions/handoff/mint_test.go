package handoff

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

const initiatedSubject = "melmastoon.bff.consumer.handoff.initiated.v1"

func TestAHandoffIsSignedRecordedAndTold(t *testing.T) {
	h := newHouse(t)
	a := h.mint(h.more(`"currency":"AFN","locale":"prs","sourceCampaign":{"source":"google","medium":"cpc","campaign":"spring-2026"}`),
		"Idempotency-Key", "k1", "Referer", "https://www.melmastoon.ghasi.io/search?city=kabul")
	if !strings.HasPrefix(a.URL, "https://kabul-grand.melmastoon.ghasi.io/book?h=") || a.TTLSeconds != 1800 {
		t.Errorf("%s", a.text)
	}
	for name, want := range map[string]string{
		"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer", "Idempotency-Replayed": "", "Content-Type": "application/json",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	token, err := h.keys.Verify(a.token(t), h.now())
	if err != nil {
		t.Fatal(err)
	}
	if token.ID != a.HandoffID || token.GuestSessionID != a.cookie() || token.TenantID != tenantID(1) || token.PropertyID != propertyID(1) ||
		token.Currency != "AFN" || token.Locale != "fa-AF" || token.KeyID != "hmac-2026-11" ||
		token.ExpiresAt.Format("2006-01-02T15:04:05.000Z") != a.ExpiresAt {
		t.Errorf("%+v for %s", token, a.text)
	}

	var row struct {
		session, currency, locale, key, campaign string
		ages                                     []int
		consumed                                 bool
		nights                                   int
	}
	err = h.parts.DB.QueryRow(context.Background(), `
		SELECT guest_session_id, currency, locale, hmac_key_id, source_campaign ->> 'campaign', children_ages, consumed, check_out - check_in
		FROM bff_consumer.handoff_replay_log WHERE id = $1`, a.HandoffID).
		Scan(&row.session, &row.currency, &row.locale, &row.key, &row.campaign, &row.ages, &row.consumed, &row.nights)
	if err != nil {
		t.Fatal(err)
	}
	if row.session != a.cookie() || row.currency != "AFN" || row.locale != "fa-AF" || row.key != "hmac-2026-11" ||
		row.campaign != "spring-2026" || len(row.ages) != 1 || row.ages[0] != 7 || row.consumed || row.nights != 3 {
		t.Errorf("%+v", row)
	}

	messages := h.told(initiatedSubject)
	if len(messages) != 1 {
		t.Fatalf("%d events", len(messages))
	}
	if err := event.ValidateMessage(initiatedSubject, messages[0]); err != nil {
		t.Error(err)
	}
	var told event.Event
	if err := json.Unmarshal(messages[0], &told); err != nil {
		t.Fatal(err)
	}
	p := told.Payload.(event.HandoffInitiated)
	want := event.HandoffInitiated{
		HandoffID: a.HandoffID, GuestSessionID: a.cookie(), TenantID: tenantID(1), TenantSlug: "kabul-grand", PropertyID: propertyID(1),
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
		t.Error("the event has the token")
	}
}

func TestWhatIsNotSaidComesFromTheSession(t *testing.T) {
	h := newHouse(t)
	a := h.mint(h.body(), "Idempotency-Key", "k1", "Accept-Language", "ps-AF", "X-Currency", "PKR",
		"X-Campaign-Source", "google", "X-Campaign-Medium", "cpc")
	token, err := h.keys.Verify(a.token(t), h.now())
	if err != nil || token.Locale != "ps-AF" || token.Currency != "PKR" {
		t.Errorf("%+v, %v", token, err)
	}
	var campaign string
	err = h.parts.DB.QueryRow(context.Background(), `SELECT source_campaign::text FROM bff_consumer.handoff_replay_log`).Scan(&campaign)
	if err != nil || !strings.Contains(campaign, `"google"`) || !strings.Contains(campaign, `"capturedAt"`) {
		t.Errorf("%s, %v", campaign, err)
	}
}

func TestWhoRefusesTelemetryIsNotSpokenOf(t *testing.T) {
	h := newHouse(t)
	h.mint(h.body(), "Idempotency-Key", "k1", "DNT", "1")
	if n, rows := len(h.told(initiatedSubject)), h.count("handoff_replay_log"); n != 0 || rows != 1 {
		t.Errorf("%d events, %d rows", n, rows)
	}
}

func TestWhatCannotBeMeantIsRefusedByName(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		field  string
	}{
		"no tenant":                  {h.body(`"tenantId"`, `"tenant"`), 422, "VALIDATION_FAILED", "tenant unknown"},
		"a property for a tenant":    {h.body(tenantID(1), propertyID(1)), 422, "VALIDATION_FAILED", "tenantId malformed"},
		"a tenant for a property":    {h.body(propertyID(1), tenantID(1)), 422, "VALIDATION_FAILED", "propertyId malformed"},
		"a newline in an id":         {h.body(tenantID(1), tenantID(1)[:29]+`\n`), 422, "VALIDATION_FAILED", "tenantId malformed"},
		"no adults":                  {h.body(`"adults":2`, `"adults":0`), 422, "VALIDATION_FAILED", "occupancy.adults out-of-range"},
		"an age too many":            {h.body(`[7]`, `[7,8]`), 422, "VALIDATION_FAILED", "occupancy.childrenAges count"},
		"a day in the past":          {h.body(h.now().AddDate(0, 0, 10).Format(time.DateOnly), h.now().AddDate(0, 0, -1).Format(time.DateOnly)), 422, "VALIDATION_FAILED", "dates.checkIn past"},
		"an unknown currency":        {h.more(`"currency":"XAU"`), 422, "CURRENCY_NOT_SUPPORTED", "currency not-supported"},
		"an unknown locale":          {h.more(`"locale":"tlh"`), 422, "LOCALE_NOT_SUPPORTED", "locale not-supported"},
		"an address for a campaign":  {h.more(`"sourceCampaign":{"source":"a@b.example"}`), 422, "VALIDATION_FAILED", "sourceCampaign.source malformed"},
		"a campaign of long ago":     {h.more(`"sourceCampaign":{"capturedAt":"0000-01-01T00:00:00+23:59"}`), 422, "VALIDATION_FAILED", "sourceCampaign.capturedAt out-of-range"},
		"a campaign of the far":      {h.more(`"sourceCampaign":{"capturedAt":"9999-12-31T23:59:59-23:59"}`), 422, "VALIDATION_FAILED", "sourceCampaign.capturedAt out-of-range"},
		"a key id of the client's":   {h.more(`"hmacKeyId":"hmac-2026-11"`), 422, "VALIDATION_FAILED", "hmacKeyId unknown"},
		"not JSON":                   {`{`, 400, "MALFORMED_REQUEST", "body syntax"},
		"a number for the occupancy": {h.body(`{"adults":2,"children":1,"rooms":1,"childrenAges":[7]}`, `2`), 422, "VALIDATION_FAILED", "occupancy type"},
	} {
		a := h.post(c.body, "Idempotency-Key", "k1")
		if a.StatusCode != c.status || !strings.HasSuffix(a.Code, "."+c.code) || a.field() != c.field {
			t.Errorf("%s: %s", name, a.text)
		}
		if a.Header.Get("Set-Cookie") != "" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, a.Header)
		}
	}
	if n := h.count("handoff_replay_log") + h.count("idempotency_keys"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestWhoseThePropertyIs(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.unknown[propertyID(3)] = true })
	for name, c := range map[string]struct{ tenant, property string }{
		"another tenant's":     {tenantID(2), propertyID(1)},
		"nobody's":             {tenantID(3), propertyID(3)},
		"nobody's, once again": {tenantID(3), propertyID(3)},
	} {
		a := h.post(h.body(tenantID(1), c.tenant, propertyID(1), c.property), "Idempotency-Key", "k1")
		if a.StatusCode != 404 || !strings.HasSuffix(a.Code, ".RESOURCE_NOT_FOUND") {
			t.Errorf("%s: %s", name, a.text)
		}
	}
	if n := h.up.properties.Load(); n != 2 {
		t.Errorf("property-service was asked %d times: an absence is to be remembered too", n)
	}
	if n := h.count("handoff_replay_log"); n != 0 {
		t.Errorf("%d handoffs", n)
	}
}

func TestASecondMintAsksNoUpstream(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	properties, brands := h.up.properties.Load(), h.up.brands.Load()
	h.mint(h.body(), guest...)
	if h.up.properties.Load() != properties || h.up.brands.Load() != brands {
		t.Error("an upstream was asked for what is cached")
	}
}

func TestMintingWhileUpstreamsFail(t *testing.T) {
	for name, c := range map[string]struct {
		failing string
		status  int
		slug    string
	}{
		"theme-config away":     {"theme", 201, "https://old-name."},
		"property-service away": {"property", 503, ""},
	} {
		h := newHouse(t)
		h.up.command(func(u *upstreams) { u.failing[c.failing] = http.StatusInternalServerError })
		a := h.post(h.body(), "Idempotency-Key", "k1")
		if a.StatusCode != c.status || !strings.HasPrefix(a.URL, c.slug) {
			t.Errorf("%s: %s", name, a.text)
		}
	}
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.unknown[tenantID(1)] = true })
	if a := h.mint(h.body(), "Idempotency-Key", "k1"); !strings.HasPrefix(a.URL, "https://old-name.") {
		t.Errorf("a tenant without a brand: %s", a.text)
	}
}

func TestASuspendedTenantGetsNobody(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	h.suspend(tenantID(1))
	before := h.count("handoff_replay_log")
	for range 2 {
		a := h.post(h.body(), guest...)
		if a.StatusCode != 403 || !strings.HasSuffix(a.Code, ".TENANT_SUSPENDED") {
			t.Errorf("%s", a.text)
		}
	}
	h.mint(h.body(tenantID(1), tenantID(2), propertyID(1), propertyID(2)), "Idempotency-Key", "k2")
	if n := h.count("handoff_replay_log"); n != before+1 {
		t.Errorf("%d handoffs", n)
	}
}

// The suspension is on record, and nobody was told yet: the transaction itself asks.
func TestASuspensionNobodyHasHeardOfCountsToo(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	h.record(tenantID(1))
	before := h.count("handoff_replay_log") + h.count("idempotency_keys") + len(h.told(initiatedSubject))
	a := h.post(h.body(), guest...)
	if a.StatusCode != 403 || !strings.HasSuffix(a.Code, ".TENANT_SUSPENDED") {
		t.Errorf("%s", a.text)
	}
	if n := h.count("handoff_replay_log") + h.count("idempotency_keys") + len(h.told(initiatedSubject)); n != before {
		t.Errorf("%d rows more", n-before)
	}
}

func TestWhileSuspensionsAreNotKnownNothingIsMinted(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := houseAt(t, url)
	proxy.Break()
	h.redis.Stop()
	a := h.post(h.body(), "Idempotency-Key", "k1")
	if a.StatusCode != 503 || !strings.HasSuffix(a.Code, ".UPSTREAM_UNAVAILABLE") || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s", a.text)
	}
	proxy.Heal()
	if n := h.count("handoff_replay_log"); n != 0 {
		t.Errorf("%d handoffs", n)
	}
}

func TestWithoutPostgresNothingIsMinted(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := houseAt(t, url)
	guest := h.guest("k1")
	proxy.Break()
	a := h.post(h.body(), guest...)
	if a.StatusCode != 503 || !strings.HasSuffix(a.Code, ".UPSTREAM_UNAVAILABLE") {
		t.Errorf("%s", a.text)
	}
	proxy.Heal()
	h.mint(h.body(), guest...) // the key is free again
}

func TestWithoutRedisAHandoffIsMintedOnce(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	before := h.count("handoff_replay_log")
	h.redis.Stop()
	first := h.mint(h.body(), guest...)
	second := h.mint(h.body(), guest...)
	if first.replayed() || !second.replayed() || first.text != second.text {
		t.Errorf("%s\n%s", first.text, second.text)
	}
	if n := h.count("handoff_replay_log"); n != before+1 {
		t.Errorf("%d handoffs", n-before)
	}
}

func TestKeysRotateWhileTokensAreOut(t *testing.T) {
	h := newHouse(t)
	h.front = serve(t, New(h.parts, keysOf(t, retired), handoff.Link{}).Serve, &lockedWriter{w: &h.log})
	old := h.mint(h.body(), "Idempotency-Key", "k1").token(t)
	h.front = serve(t, New(h.parts, keysOf(t, handoffs+","+retired), handoff.Link{}).Serve, &lockedWriter{w: &h.log})
	new := h.mint(h.body(), "Idempotency-Key", "k2").token(t)
	grace, after := keysOf(t, handoffs+","+retired), keysOf(t, handoffs)
	for name, c := range map[string]struct {
		keys  handoff.Keys
		token string
		ok    bool
	}{
		"the old token in grace": {grace, old, true}, "the new one": {grace, new, true},
		"the old token after grace": {after, old, false}, "the new one after": {after, new, true},
	} {
		if _, err := c.keys.Verify(c.token, h.now()); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLogHasNothingToSteal(t *testing.T) {
	h := newHouse(t)
	a := h.mint(h.body(), "Idempotency-Key", "the-key", "Referer", "https://www.melmastoon.ghasi.io/search")
	h.mint(h.body(), "Cookie", "gms_id="+a.cookie(), "Idempotency-Key", "the-key")
	h.post(h.body(`"adults":2`, `"adults":99`), "Cookie", "gms_id="+a.cookie(), "Idempotency-Key", "the-key")
	log := h.log.String()
	token := a.token(t)
	for name, secret := range map[string]string{
		"the token": token, "its MAC": token[strings.Index(token, ".")+1:], "the cookie": a.cookie(), "the key": "the-key",
		"the browser": "Firefox", "the address": "192.0.2.1", "the handoff": a.HandoffID,
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s", name)
		}
	}
	if n := strings.Count(log, "\n"); n != 3 {
		t.Errorf("%d records for three requests", n)
	}
}
