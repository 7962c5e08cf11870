package consume

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestConsume_ReturnsHandoffAndMarksItConsumed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.Advance(22 * time.Second)
	a := h.postConsume(m, "tenant-1")
	want := consumeResponse{
		HandoffID: m.id, GuestSessionID: m.sessionID, TenantID: m.tenantID, PropertyID: a.PropertyID,
		Dates:     stay.Dates{CheckIn: stay.Date{Year: 2026, Month: 11, Day: 30}, CheckOut: stay.Date{Year: 2026, Month: 12, Day: 3}},
		Occupancy: stay.Occupancy{Adults: 2, Children: 1, Rooms: 1, ChildrenAges: []int{7}},
		Currency:  "AFN", Locale: "ps-AF", SourceCampaign: &campaign{Source: "google", CapturedAt: "2026-11-20T12:00:00.000Z"},
		MintedAt: "2026-11-20T12:00:00.000Z", ExpiresAt: "2026-11-20T12:30:00.000Z", ConsumedAt: "2026-11-20T12:00:22.000Z",
	}
	if diff := cmp.Diff(want, a.consumeResponse); diff != "" || !a.hasStatus(200, "") {
		t.Errorf("got status %d, want 200; answer (-want +got):\n%s", a.StatusCode, diff)
	}
	by := queryValue[string](h, `SELECT consumed_by FROM bff_consumer.handoff_replay_log WHERE id = $1 AND consumed AND consumed_at = $2`, m.id, h.Now())
	if by != "tenant-1" {
		t.Errorf("got consumed_by %q; want tenant-1", by)
	}
	if events, verdicts := h.countReports(); events+verdicts != 0 {
		t.Errorf("got %d events, %d verdicts; want none", events, verdicts)
	}
}

func TestConsume_ReplayIsRejectedReportedAndPenalized(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.postConsume(m, "tenant-1")
	h.Advance(time.Second)
	a := h.postConsume(m, "tenant-2", "X-Request-Id", "01KAH9ZWV9F3M7X5Q2T8R4N6PC")
	if !a.hasStatus(409, "HANDOFF_REPLAYED") {
		t.Errorf("got %s; want 409 HANDOFF_REPLAYED", a.Text)
	}
	message := queryValue[json.RawMessage](h, `SELECT payload FROM bff_consumer.outbox WHERE topic = $1`, botSuspectedSubject)
	if err := strict.ValidateMessage(botSuspectedSubject, message); err != nil {
		t.Error(err)
	}
	var e event.Event
	if err := json.Unmarshal(message, &e); err != nil {
		t.Fatal(err)
	}
	report := e.Payload.(event.BotSuspected)
	if e.SessionID != m.sessionID || e.RetentionClass != event.Audit || e.RequestID != "01KAH9ZWV9F3M7X5Q2T8R4N6PC" || report.GuestSessionID != m.sessionID ||
		report.FingerprintHash != fingerprintHash || report.IPHash != ipHash || report.Verdict != "suspect" || report.ActionTaken != "none" ||
		len(report.Signals) != 1 || report.Signals[0].Detail != "handoff-replayed" || !report.EvaluatedAt.Equal(h.Now()) {
		t.Errorf(`got %+v %+v; want SessionID = %v, RetentionClass = %v, RequestID = "01KAH9ZWV9F3M7X5Q2T8R4N6PC", report.GuestSessionID = %v, report.FingerprintHash = %v, report.IPHash = %v, report.Verdict = "suspect", report.ActionTaken = "none", len(report.Signals) = 1, report.Signals[0].Detail = "handoff-replayed", report.EvaluatedAt.Equal(h.Now())`, e, report, m.sessionID, event.Audit, m.sessionID, fingerprintHash, ipHash)
	}
	if strings.Contains(string(message), m.token) {
		t.Error("the event contains the token")
	}
	row := queryValue[string](h, `
		SELECT guest_session_id || ' ' || encode(fingerprint_hash, 'hex') || ' ' || score || ' ' || verdict || ' ' || action_taken || ' ' || (signals -> 0 ->> 'detail')
		FROM bff_consumer.bot_score_log`)
	if want := m.sessionID + " " + strings.Repeat("ab", 32) + " 0.6 suspect none handoff-replayed"; row != want {
		t.Errorf("got row %q; want %q", row, want)
	}
	key := h.consume.replays.keys.Penalty(fingerprintHash)
	if n, life := h.RDB.Get(t.Context(), key).Val(), h.RDB.TTL(t.Context(), key).Val(); n != "1" || life <= 23*time.Hour || life > 24*time.Hour {
		t.Errorf("got penalty %q for %s; want 1 for a day", n, life)
	}
	h.postConsume(m, "tenant-1")
	if n := h.RDB.Get(t.Context(), key).Val(); n != "2" {
		t.Errorf("got penalty %q; want 2", n)
	}
}

func TestConsume_RetryNeedsSameCallerAndKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	key := []string{"Idempotency-Key", "k1"}
	for _, c := range []struct {
		name   string
		first  []string
		after  time.Duration
		by     string
		again  []string
		status int
	}{
		{"same caller and key", key, 0, "tenant-1", key, 200},
		{"within a minute", key, 59 * time.Second, "tenant-1", key, 200},
		{"under the alias", key, 0, "tenant-1", []string{"X-Idempotency-Key", "k1"}, 200},
		{"a minute later", key, time.Minute, "tenant-1", key, 409},
		{"with another key", key, 0, "tenant-1", []string{"Idempotency-Key", "k2"}, 409},
		{"without the key", key, 0, "tenant-1", nil, 409},
		{"another instance", key, 0, "tenant-2", key, 409},
		{"another account", key, 0, "tenant-1", []string{"Idempotency-Key", "k1", "Authorization", "second"}, 409},
		{"no key in either call", nil, 0, "tenant-1", nil, 409},
		{"a key in the second call only", nil, 0, "tenant-1", key, 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, verdicts := h.countReports()
			m := h.mint()
			first := h.postConsume(m, "tenant-1", c.first...)
			if !first.hasStatus(200, "") {
				t.Fatalf("got %s; want 200", first.Text)
			}
			h.Advance(c.after)
			headers := append([]string{}, c.again...)
			if len(headers) == 4 {
				headers[3] = "Bearer " + h.issuer.Token(audience, secondAccount, h.Now())
			}
			a := h.postConsume(m, c.by, headers...)
			if a.StatusCode != c.status || c.status == 200 && a.Text != first.Text {
				t.Errorf("got %s; want status %d", a.Text, c.status)
			}
			newEvents, newVerdicts := h.countReports()
			if events, verdicts = newEvents-events, newVerdicts-verdicts; events != verdicts || (events == 0) != (c.status == 200) {
				t.Errorf("got %d events, %d verdicts; want reports = %t", events, verdicts, c.status != 200)
			}
		})
	}
}

func TestConsume_StatusByHandoffState(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	key := []string{"Idempotency-Key", "k1"}
	for name, c := range map[string]struct {
		change func(*harness, mintedHandoff)
		by     string
		status int
		code   string
	}{
		"last millisecond":          {func(h *harness, m mintedHandoff) { h.Advance(30*time.Minute - 1) }, "tenant-1", 200, ""},
		"expired":                   {func(h *harness, m mintedHandoff) { h.Advance(30 * time.Minute) }, "tenant-1", 410, "HANDOFF_EXPIRED"},
		"expired and row deleted":   {func(h *harness, m mintedHandoff) { h.Advance(25 * time.Hour); h.deleteHandoff(m) }, "tenant-1", 410, "HANDOFF_EXPIRED"},
		"expired, tenant suspended": {func(h *harness, m mintedHandoff) { h.Advance(time.Hour); h.RecordSuspension(m.tenantID) }, "tenant-1", 410, "HANDOFF_EXPIRED"},
		"never minted":              {func(h *harness, m mintedHandoff) { h.deleteHandoff(m) }, "tenant-1", 404, "HANDOFF_NOT_FOUND"},
		"tenant suspended":          {func(h *harness, m mintedHandoff) { h.RecordSuspension(m.tenantID) }, "tenant-1", 403, "TENANT_SUSPENDED"},
		"consumed, tenant suspended, retried": {func(h *harness, m mintedHandoff) {
			h.postConsume(m, "tenant-1", key...)
			h.RecordSuspension(m.tenantID)
		}, "tenant-1", 200, ""},
		"consumed, tenant suspended, replayed": {func(h *harness, m mintedHandoff) {
			h.postConsume(m, "tenant-1", key...)
			h.RecordSuspension(m.tenantID)
		}, "tenant-2", 409, "HANDOFF_REPLAYED"},
		"consumed, retried after expiry": {func(h *harness, m mintedHandoff) { h.postConsume(m, "tenant-1", key...); h.Advance(time.Hour) }, "tenant-1", 409, "HANDOFF_REPLAYED"},
		"consumed before expiry, retried within a minute": {func(h *harness, m mintedHandoff) {
			h.Advance(30*time.Minute - time.Second)
			h.postConsume(m, "tenant-1", key...)
			h.Advance(10 * time.Second)
		}, "tenant-1", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := h.countReports()
			m := h.mint()
			c.change(h, m)
			a := h.postConsume(m, c.by, key...)
			if !a.hasStatus(c.status, c.code) {
				t.Errorf("got %s; want %v %v", a.Text, c.status, c.code)
			}
			if events, _ := h.countReports(); (events > before) != (c.status == 409) {
				t.Errorf("got %d events; want a report %t", events-before, c.status == 409)
			}
		})
	}
}

func (h *harness) deleteHandoff(m mintedHandoff) {
	h.Exec(`DELETE FROM bff_consumer.handoff_replay_log WHERE id = $1`, m.id)
}

func TestConsume_InvalidTokenAnswers401(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m, other := h.mint(), h.mint()
	text, mac, _ := strings.Cut(m.token, ".")
	for name, token := range map[string]string{
		"another handoff's":     other.token,
		"truncated":             m.token[:len(m.token)-1],
		"padded":                m.token + "=",
		"without its MAC":       text + ".",
		"another MAC":           text + "." + strings.Repeat("A", len(mac)),
		"a newline behind":      m.token + `\n`,
		"a newline inside":      text[:9] + `\n` + text[9:] + "." + mac,
		"a retired key":         h.mint(removedKey).token,
		"a JSON web token":      h.issuer.Token(audience, callerAccount, h.Now()),
		"the id in its place":   m.id,
		"of the wrong encoding": strings.ToUpper(m.token),
	} {
		t.Run(name, func(t *testing.T) {
			a := h.post(m.id, `{"token":"`+token+`","consumedBy":"tenant-1"}`)
			if !a.hasStatus(401, "HANDOFF_SIGNATURE_INVALID") {
				t.Errorf("got %s; want 401 HANDOFF_SIGNATURE_INVALID", a.Text)
			}
		})
	}
	if retired := h.mint(removedKey); !h.postConsume(retired, "tenant-1").hasStatus(401, "HANDOFF_SIGNATURE_INVALID") {
		t.Error("a token of a removed key is not 401")
	}
	for _, path := range []string{other.id, "x", "bhd_", m.id + "0", strings.ToLower(m.id)} {
		if a := h.post(path, `{"token":"`+m.token+`","consumedBy":"tenant-1"}`); !a.hasStatus(401, "HANDOFF_SIGNATURE_INVALID") {
			t.Errorf("at %s: got %s; want 401 HANDOFF_SIGNATURE_INVALID", path, a.Text)
		}
	}
	if h.isConsumed(m) || h.isConsumed(other) {
		t.Error("the handoff was consumed")
	}
	if inGrace := h.mint(graceKey); !h.postConsume(inGrace, "tenant-1").hasStatus(200, "") {
		t.Error("a token of a key in grace is not 200")
	}
	future := func() mintedHandoff { h.Advance(2 * time.Minute); defer h.Advance(-2 * time.Minute); return h.mint() }()
	if a := h.postConsume(future, "tenant-1"); !a.hasStatus(401, "HANDOFF_SIGNATURE_INVALID") {
		t.Errorf("minted 2 minutes ahead: got %s; want 401", a.Text)
	}
}

func TestConsume_UnlistedCallerAnswers403(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	for name, authorization := range map[string]string{
		"no token":         "",
		"a guest":          "Bearer " + m.token,
		"another account":  "Bearer " + h.issuer.Token(audience, "guest@example.com", h.Now()),
		"another audience": "Bearer " + h.issuer.Token("https://other.example", callerAccount, h.Now()),
		"expired":          "Bearer " + h.issuer.Token(audience, callerAccount, h.Now().Add(-2*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			if a := h.postConsume(m, "tenant-1", "Authorization", authorization); !a.hasStatus(403, "CALLER_NOT_ALLOWED") {
				t.Errorf("got %s; want 403 CALLER_NOT_ALLOWED", a.Text)
			}
		})
	}
	if a := h.post(m.id, `{`, "Authorization", ""); !a.hasStatus(403, "CALLER_NOT_ALLOWED") {
		t.Errorf("malformed body of an unlisted caller: got %s; want 403", a.Text)
	}
	if h.isConsumed(m) {
		t.Error("the handoff was consumed")
	}
	if a := h.postConsume(m, "tenant-1", "Authorization", "Bearer "+h.issuer.Token(audience, secondAccount, h.Now())); !a.hasStatus(200, "") {
		t.Errorf("second account: got %s; want 200", a.Text)
	}
}

func TestConsume_InvalidRequestNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	for name, c := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"no token":         {`{"consumedBy":"tenant-1"}`, 422, "token"},
		"no caller":        {`{"token":"` + m.token + `"}`, 422, "consumedBy"},
		"a long name":      {`{"token":"` + m.token + `","consumedBy":"` + strings.Repeat("t", 129) + `"}`, 422, "consumedBy"},
		"a name of two":    {`{"token":"` + m.token + `","consumedBy":"tenant 1"}`, 422, "consumedBy"},
		"an unknown field": {`{"token":"` + m.token + `","consumedBy":"tenant-1","force":true}`, 422, "force"},
		"not JSON":         {`{`, 400, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.post(m.id, c.body)
			if a.StatusCode != c.status || len(a.Errors) == 0 || a.Errors[0].Field != c.field {
				t.Errorf("got %s; want status %v, non-empty len(Errors), Errors[0].Field = %v", a.Text, c.status, c.field)
			}
		})
	}
	if a := h.postConsume(m, "tenant-1", "Idempotency-Key", strings.Repeat("k", 256)); !a.hasStatus(400, "MALFORMED_REQUEST") {
		t.Errorf("key of 256 characters: got %s; want 400", a.Text)
	}
	if h.isConsumed(m) {
		t.Error("the handoff was consumed")
	}
}

func TestConsume_OptedOutGuestEmitsNoEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.Exec(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, now())`, m.sessionID)
	h.postConsume(m, "tenant-1")
	if a := h.postConsume(m, "tenant-2"); !a.hasStatus(409, "HANDOFF_REPLAYED") {
		t.Errorf("got %s; want 409 HANDOFF_REPLAYED", a.Text)
	}
	if events, verdicts := h.countReports(); events != 0 || verdicts != 1 {
		t.Errorf("got %d events, %d verdicts", events, verdicts)
	}
}

func TestConsume_WithoutPostgresAnswers503(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t))
	m := h.mint()
	h.PostgresProxy.Break()
	if a := h.postConsume(m, "tenant-1"); !a.hasStatus(503, "UPSTREAM_UNAVAILABLE") || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %s; want 503 UPSTREAM_UNAVAILABLE, non-empty Retry-After", a.Text)
	}
	h.PostgresProxy.Heal()
	if a := h.postConsume(m, "tenant-1"); !a.hasStatus(200, "") {
		t.Errorf("got %s; want 200", a.Text)
	}
	h.PostgresProxy.Break()
	// a 409 needs its report
	if a := h.postConsume(m, "tenant-2"); !a.hasStatus(503, "UPSTREAM_UNAVAILABLE") {
		t.Errorf("got %s; want 503 UPSTREAM_UNAVAILABLE", a.Text)
	}
}

func TestConsume_ReplayIsReportedWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.Redis.Stop()
	h.postConsume(m, "tenant-1")
	if a := h.postConsume(m, "tenant-2"); !a.hasStatus(409, "HANDOFF_REPLAYED") {
		t.Errorf("got %s; want 409 HANDOFF_REPLAYED", a.Text)
	}
	if events, verdicts := h.countReports(); events != 1 || verdicts != 1 {
		t.Errorf("got %d events, %d verdicts", events, verdicts)
	}
	if !strings.Contains(h.Log.String(), "penaltyLost") {
		t.Error("got no log field penaltyLost")
	}
}

func TestConsume_LogContainsNoSecrets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	bearer := h.issuer.Token(audience, callerAccount, h.Now())
	h.postConsume(m, "tenant-1", "Idempotency-Key", "the-key", "Authorization", "Bearer "+bearer)
	h.postConsume(m, "tenant-2")
	h.post(m.id, `{"token":"`+m.token[1:]+`","consumedBy":"tenant-1"}`)
	h.postConsume(m, "tenant-1", "Authorization", "Bearer "+bearer[1:])
	log := h.Log.String()
	for name, secret := range map[string]string{
		"the token": m.token[1:], "its MAC": m.token[strings.Index(m.token, ".")+1:], "the key": "the-key", "the bearer": bearer[1:],
		"the handoff": m.id, "the session": m.sessionID, "the address": "192.0.2.1",
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log contains %s", name)
		}
	}
	if n := strings.Count(log, "\n"); n != 4 {
		t.Errorf("got %d records for four requests; want 4", n)
	}
}

func TestOpen_MissingOrInvalidSettingFails(t *testing.T) {
	for _, name := range []string{"REDIS_ADDR", "PEPPERS", "HANDOFF_KEYS", "CALLER_AUDIENCE", "CALLER_ACCOUNTS"} {
		t.Setenv(name, "")
	}
	_, err := open(context.Background(), nil)
	if err == nil {
		t.Fatal("opened without any setting")
	}
	t.Setenv("REDIS_ADDR", "127.0.0.1:6379")
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1/d")
	t.Setenv("PEPPERS", "test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	t.Setenv("HANDOFF_KEYS", activeKey)
	t.Setenv("CALLER_AUDIENCE", audience)
	if _, err := open(context.Background(), nil); err == nil {
		t.Error("opened without a list of accounts")
	}
	t.Setenv("CALLER_ACCOUNTS", callerAccount+","+secondAccount)
	if _, err := open(context.Background(), nil); err != nil {
		t.Error(err)
	}
	t.Setenv("HANDOFF_KEYS", "may:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4=")
	if _, err := open(context.Background(), nil); err == nil || strings.Contains(err.Error(), "bWF5") {
		t.Errorf("got error %v; want one without the key", err)
	}
}
