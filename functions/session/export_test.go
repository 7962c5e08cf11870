package session

import (
	"context"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func TestNobodySeesAnothersSession(t *testing.T) {
	h := newHouse(t)
	mine, other := h.guest(), h.guest()
	h.live(mine)
	for _, path := range []string{"/session", "/session/export"} {
		for name, a := range map[string]*answer{
			"another guest":        h.must(200, "GET", path, other, ""),
			"nobody":               h.must(200, "GET", path, "", ""),
			"by parameter":         h.must(200, "GET", path+"?id="+mine+"&gms_id="+mine+"&guestSessionId="+mine, other, ""),
			"by header":            h.must(200, "GET", path, other, "", "X-Guest-Session-Id", mine, "Authorization", "Bearer "+mine),
			"from another browser": h.must(200, "GET", path, mine, "", "User-Agent", iphone),
			"with two cookies":     h.must(200, "GET", path, "", "", "Cookie", "gms_id="+mine+"; gms_id="+mine),
			"a forged id":          h.must(200, "GET", path, id.New(id.Session, h.now()), ""),
		} {
			for _, secret := range []string{mine, "note of mine", "Kabul", propertyID(1), "secret-token"} {
				if strings.Contains(string(a.body), secret) {
					t.Errorf("%s, %s: %q in %s", path, name, secret, a.body)
				}
			}
		}
	}
	h.must(200, "POST", "/session/consent", mine, `{"consentTelemetry":false}`, "User-Agent", iphone)
	h.must(204, "POST", "/session/clear", mine, "", "User-Agent", iphone)
	h.must(204, "POST", "/session/clear", other, "")
	if s := h.session(mine); len(s.WishlistRefs) != 2 || !s.Flags.ConsentTelemetry {
		t.Errorf("somebody else changed it: %+v", s)
	}
}

func TestAnExportHasEverything(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest("X-Campaign-Source", "google")
	h.live(cookie)
	h.must(200, "POST", "/session/consent", cookie, `{"consentMarketing":true}`)
	room := wishlist.New(h.parts.Redis, h.parts.DB, h.parts.Keys, h.now)
	if _, err := room.Remove(t.Context(), cookie, propertyID(0)); err != nil {
		t.Fatal(err)
	}
	h.pg.Break()
	h.must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`) // its event waits in Redis
	h.pg.Heal()
	h.eventually("Postgres is back", func() bool { return h.parts.DB.Ping(context.Background()) == nil })
	a := h.must(200, "GET", "/session/export", cookie, "")
	var x struct {
		ConsentDecidedAt                                                                                    string
		Session                                                                                             seen
		Technical                                                                                           map[string]string
		Wishlist                                                                                            []struct{ PropertyID, Note string }
		RemovedFromWishlist                                                                                 []struct{ PropertyID, RemovedAt string }
		RecentlyViewed, SearchHistory, SearchSessions, Handoffs, IdempotencyKeys, UnsentEvents, BotVerdicts []map[string]any
	}
	a.into(t, &x)
	if x.Session.ID != cookie || x.ConsentDecidedAt == "" || x.Technical["cookieFingerprintHash"] == "" || x.Technical["bindingHash"] == "" ||
		len(x.Wishlist) != 1 || x.Wishlist[0].Note != "note of mine" || len(x.RemovedFromWishlist) != 1 || x.RemovedFromWishlist[0].RemovedAt == "" ||
		len(x.RecentlyViewed) != 1 || len(x.SearchHistory) != 1 || len(x.SearchSessions) != 1 || len(x.Handoffs) != 1 ||
		len(x.IdempotencyKeys) != 1 || len(x.BotVerdicts) != 1 {
		t.Errorf("%s", a.body)
	}
	if x.Handoffs[0]["tenantId"] != tenantID(1) || x.Handoffs[0]["fingerprintHash"] != "sha256:01" || x.SearchSessions[0]["query"] != `{"city":"Kabul"}` {
		t.Errorf("%v %v", x.Handoffs, x.SearchSessions)
	}
	subjects := map[string]bool{}
	for _, e := range x.UnsentEvents {
		subjects[e["envelope"].(map[string]any)["subject"].(string)] = true
	}
	for _, subject := range []string{"session.started", "click.recorded", "wishlist.added", "locale.changed"} {
		if !subjects["melmastoon.bff.consumer."+subject+".v1"] {
			t.Errorf("%s is missing among %v", subject, subjects)
		}
	}
	if strings.Contains(string(a.body), "secret-token") || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%s", a.body)
	}
	// Whatever Redis has of this session is in it.
	for field := range h.parts.Redis.HGetAll(t.Context(), h.parts.Keys.Session(cookie)).Val() {
		if x.Technical[field] == "" && !slices.Contains(shown, field) {
			t.Errorf("%s of the hash is missing", field)
		}
	}
}
