package session

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func TestSession_IsolatedBetweenGuests(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	mine, other := h.newGuest(), h.newGuest()
	h.populate(mine)
	for _, path := range []string{"/session", "/session/export"} {
		for name, a := range map[string]*functest.Result{
			"another guest":        h.MustDo(200, "GET", path, other, ""),
			"no cookie":            h.MustDo(200, "GET", path, "", ""),
			"by parameter":         h.MustDo(422, "GET", path+"?id="+mine+"&gms_id="+mine+"&guestSessionId="+mine, other, ""),
			"by header":            h.MustDo(200, "GET", path, other, "", "X-Guest-Session-Id", mine, "Authorization", "Bearer "+mine),
			"from another browser": h.MustDo(200, "GET", path, mine, "", "User-Agent", functest.IPhone),
			"with two cookies":     h.MustDo(200, "GET", path, "", "", "Cookie", "gms_id="+mine+"; gms_id="+mine),
			"a forged id":          h.MustDo(200, "GET", path, id.New(id.Session, h.Now()), ""),
		} {
			for _, secret := range []string{mine, "note of mine", "Kabul", propertyID(1), "secret-token"} {
				if strings.Contains(a.Text, secret) {
					t.Errorf("%s, %s: found %q in %s", path, name, secret, a.Text)
				}
			}
		}
	}
	h.MustDo(200, "POST", "/session/consent", mine, `{"consentTelemetry":false}`, "User-Agent", functest.IPhone)
	h.MustDo(204, "POST", "/session/clear", mine, "", "User-Agent", functest.IPhone)
	h.MustDo(204, "POST", "/session/clear", other, "")
	if s := h.getSession(mine); len(s.WishlistRefs) != 2 || !s.Flags.ConsentTelemetry {
		t.Errorf("after requests of others: got %+v; want it unchanged", s)
	}
}

// timestampPattern is the form of every time in a body.
var timestampPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

func TestSessionExport_ContainsAllStoredData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest("X-Campaign-Source", "google")
	h.populate(cookie)
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentMarketing":true}`)
	store := wishlist.New(h.Deps.Redis, h.Deps.DB, h.Deps.Keys, h.Now)
	if _, err := store.Remove(t.Context(), cookie, propertyID(0)); err != nil {
		t.Fatal(err)
	}
	h.PostgresProxy.Break()
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`) // its event is buffered in Redis
	h.PostgresProxy.Heal()
	h.Eventually("Postgres is back", func() bool { return h.Deps.DB.Ping(context.Background()) == nil })
	a := h.MustDo(200, "GET", "/session/export", cookie, "")
	var x struct {
		ConsentDecidedAt                                                                                    string
		Session                                                                                             sessionBody
		Technical                                                                                           map[string]string
		Wishlist                                                                                            []struct{ PropertyID, Note string }
		RemovedFromWishlist                                                                                 []struct{ PropertyID, RemovedAt string }
		RecentlyViewed, SearchHistory, SearchSessions, Handoffs, IdempotencyKeys, UnsentEvents, BotVerdicts []map[string]any
	}
	a.Decode(t, &x)
	if x.Session.ID != cookie || x.ConsentDecidedAt == "" || x.Technical["cookieFingerprintHash"] == "" || x.Technical["bindingHash"] == "" ||
		len(x.Wishlist) != 1 || x.Wishlist[0].Note != "note of mine" || len(x.RemovedFromWishlist) != 1 || x.RemovedFromWishlist[0].RemovedAt == "" ||
		len(x.RecentlyViewed) != 1 || len(x.SearchHistory) != 1 || len(x.SearchSessions) != 1 || len(x.Handoffs) != 1 ||
		len(x.IdempotencyKeys) != 1 || len(x.BotVerdicts) != 1 {
		t.Errorf(`got %s; want Session.ID = %v, non-empty ConsentDecidedAt, non-empty Technical["cookieFingerprintHash"], non-empty Technical["bindingHash"], len(Wishlist) = 1, Wishlist[0].Note = "note of mine", len(RemovedFromWishlist) = 1, non-empty RemovedFromWishlist[0].RemovedAt, len(RecentlyViewed) = 1, len(SearchHistory) = 1, len(SearchSessions) = 1, len(Handoffs) = 1, len(IdempotencyKeys) = 1, len(BotVerdicts) = 1`, a.Text, cookie)
	}
	if x.Handoffs[0]["tenantId"] != tenantID(1) || x.Handoffs[0]["fingerprintHash"] != "sha256:01" {
		t.Errorf(`got %v; want Handoffs[0]["tenantId"] = %v, Handoffs[0]["fingerprintHash"] = "sha256:01"`, x.Handoffs, tenantID(1))
	}
	subjects := map[string]bool{}
	for _, e := range x.UnsentEvents {
		subjects[e["envelope"].(map[string]any)["subject"].(string)] = true
	}
	for _, subject := range []string{"session.started", "click.recorded", "wishlist.added", "locale.changed"} {
		if !subjects["melmastoon.bff.consumer."+subject+".v1"] {
			t.Errorf("got subjects %v; want %s among them", subjects, subject)
		}
	}
	if strings.Contains(a.Text, "secret-token") || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf(`got %s; want body without "secret-token", Content-Disposition beginning with "attachment"`, a.Text)
	}
	campaign, _ := x.Handoffs[0]["sourceCampaign"].(map[string]any)
	if len(campaign) != 2 || campaign["source"] != "google" || campaign["capturedAt"] != "2026-04-23T09:14:22.041Z" {
		t.Errorf("got campaign %v; want source google, captured 2026-04-23T09:14:22.041Z", campaign)
	}
	search := x.SearchSessions[0]
	if query, _ := search["query"].(map[string]any); query["city"] != "Kabul" || search["resultCount"] != 0.0 {
		t.Errorf("got search session %v; want the query of Kabul and resultCount 0", search)
	}
	for _, field := range []string{"startedAt", "lastInteractionAt", "ttlExpiresAt"} {
		if text, _ := search[field].(string); !timestampPattern.MatchString(text) {
			t.Errorf("%s: got %v; want a time in UTC with milliseconds", field, search[field])
		}
	}
	// The export has every field that Redis has.
	for field := range h.RDB.HGetAll(t.Context(), h.Deps.Keys.Key("srs", search["searchSessionId"].(string))).Val() {
		if _, there := search[field]; !there {
			t.Errorf("field %s of the search session is missing", field)
		}
	}
	for field := range h.RDB.HGetAll(t.Context(), h.Deps.Keys.Session(cookie)).Val() {
		if x.Technical[field] == "" && !slices.Contains(visibleFields, field) {
			t.Errorf("field %s of the session is missing", field)
		}
	}
}
