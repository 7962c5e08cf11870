package session

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// left is what the stores still have of a session, but for what stays for audit.
func (h *house) left(cookie string) (found []string) {
	h.T.Helper()
	ctx := context.Background()
	for _, key := range h.RDB.Keys(ctx, "*").Val() {
		switch {
		case strings.HasSuffix(key, "{"+cookie+"}:cleared"):
		case strings.Contains(key, cookie), strings.Contains(key, ":srs:"):
			found = append(found, key)
		case strings.HasSuffix(key, ":spill"):
			for _, row := range h.RDB.LRange(ctx, key, 0, -1).Val() {
				if strings.Contains(row, cookie) {
					found = append(found, "a spilled row")
				}
			}
		}
	}
	for _, query := range []string{
		"wishlist_anonymous WHERE guest_session_id = $1", "idempotency_keys WHERE guest_session_id = $1",
		"outbox WHERE headers ->> 'orderingKey' = $1 AND published_at IS NULL AND topic NOT LIKE '%.session.ended.v1'",
	} {
		if h.Count(query, cookie) != 0 {
			found = append(found, query)
		}
	}
	return found
}

func TestAClearForgetsEverything(t *testing.T) {
	h := newHouse(t)
	cookie, other := h.guest(), h.guest()
	h.live(cookie)
	h.live(other)
	h.session(cookie)
	h.session(other)
	h.Exec("UPDATE bff_consumer.outbox SET published_at = now() WHERE topic LIKE '%.session.started.v1'")
	h.PG.Break()
	h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`) // its event waits in Redis
	h.PG.Heal()
	h.Eventually("Postgres is back", func() bool { return h.Parts.DB.Ping(context.Background()) == nil })
	before := len(h.left(other))
	h.Advance(time.Hour)
	a := h.Must(204, "POST", "/session/clear", cookie, "")
	if got := a.Header.Get("Set-Cookie"); !strings.HasPrefix(got, "gms_id=;") || !strings.Contains(got, "Max-Age=0") || !strings.Contains(got, "Path=/") || !strings.Contains(got, "HttpOnly") {
		t.Errorf("%s", got)
	}
	for _, thing := range h.left(cookie) {
		if !strings.Contains(thing, ":srs:") { // those of the other guest
			t.Errorf("left: %s", thing)
		}
	}
	if n := len(h.RDB.Keys(t.Context(), "*:srs:*").Val()); n != 1 {
		t.Errorf("%d search sessions, want the other guest's", n)
	}
	if n := h.RDB.Exists(t.Context(), h.Parts.Keys.Key("idem", "c-"+cookie)).Val(); n != 0 {
		t.Error("the copy of an answer is left")
	}
	if h.Count("outbox WHERE topic LIKE '%.session.started.v1'") != 2 || h.Count("handoff_replay_log WHERE guest_session_id = $1", cookie) != 1 || h.Count("bot_score_log WHERE guest_session_id = $1", cookie) != 1 {
		t.Error("what was sent, or is for audit, is gone")
	}
	if got := h.left(other); len(got) < before-1 {
		t.Errorf("the other guest lost something: %v", got)
	}
	ended := h.Events("session.ended")
	if len(ended) != 1 {
		t.Fatalf("%d ends", len(ended))
	}
	if e := ended[0].Payload.(event.SessionEnded); e.Reason != event.ExplicitClear || e.LifetimeSeconds != 3600 || e.GuestSessionID != cookie || !e.EndedAt.Equal(h.Now()) {
		t.Errorf("%+v", e)
	}
}

func TestAClearIsSafeToRepeat(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.live(cookie)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { h.Ask("POST", "/session/clear", cookie, "") })
	}
	all.Wait()
	for range 2 {
		h.Must(204, "POST", "/session/clear", cookie, "")
	}
	if n := len(h.Events("session.ended")); n != 1 {
		t.Errorf("%d ends", n)
	}
	if got := h.left(cookie); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if n := h.Count("outbox WHERE topic LIKE '%.session.started.v1'"); n != 0 {
		t.Errorf("%d sessions were begun by clearing", n)
	}
}

func TestAClearWithoutASessionBeginsNone(t *testing.T) {
	h := newHouse(t)
	for _, cookie := range []string{"", "gms_nonsense"} {
		a := h.Must(204, "POST", "/session/clear", cookie, "")
		if !strings.Contains(a.Header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("%v", a.Header)
		}
	}
	if n := len(h.Events("")) + h.Count("session_choice"); n != 0 {
		t.Errorf("%d rows", n)
	}
	if keys := h.RDB.Keys(t.Context(), "*session*").Val(); len(keys) != 0 {
		t.Errorf("%v", keys)
	}
}

func TestAClearedCookieGetsANewSession(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.live(cookie)
	h.Must(204, "POST", "/session/clear", cookie, "")
	h.RDB.FlushAll(t.Context()) // the mark in Redis is not what it hangs on
	a := h.Must(200, "GET", "/session", cookie, "")
	var s seen
	a.Into(t, &s)
	if a.Cookie() == cookie || s.ID == cookie || len(s.WishlistRefs) != 0 {
		t.Errorf("%s", a.Text)
	}
}

func TestAClearOfAGuestWhoRefusedIsSilent(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest("DNT", "1")
	h.Must(204, "POST", "/session/clear", cookie, "", "DNT", "1")
	cookie = h.guest()
	h.Must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`)
	h.Must(204, "POST", "/session/clear", cookie, "")
	if n := len(h.Events("session.ended")); n != 0 {
		t.Errorf("%d ends", n)
	}
}

func TestRequestsThatRunBesideAClearWriteNothingBehindIt(t *testing.T) {
	h := newHouse(t)
	room := wishlist.New(h.Parts.Redis, h.Parts.DB, h.Parts.Keys, h.Now)
	for range 5 {
		cookie := h.guest()
		h.live(cookie)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for n := range 30 {
			all.Go(func() {
				<-begin
				switch n % 5 {
				case 0:
					h.live2(cookie)
				case 1:
					w := wishlist.Wish{PropertyID: propertyID(n), TenantID: tenantID(n), Source: "list"}
					room.Add(context.Background(), cookie, w)
				case 2:
					h.Ask("POST", "/session/locale", cookie, `{"locale":"ru"}`)
				case 3:
					h.Ask("GET", "/session", cookie, "")
				case 4:
					h.Ask("POST", "/session/consent", cookie, `{"consentMarketing":true}`)
				}
			})
		}
		all.Go(func() {
			<-begin
			if a := h.Ask("POST", "/session/clear", cookie, ""); a.StatusCode != http.StatusNoContent {
				h.T.Errorf("%d %s", a.StatusCode, a.Text)
			}
		})
		close(begin)
		all.Wait()
		for _, thing := range h.left(cookie) {
			if !strings.Contains(thing, ":srs:") {
				t.Errorf("left: %s", thing)
			}
		}
		if n := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", cookie); n > 1 {
			t.Errorf("%d events", n)
		}
	}
}

// live2 is a visit of another function that writes everything a visit may.
func (h *house) live2(cookie string) {
	h.visit(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		h.Parts.Sessions.PushViewed(ctx, pipe, s, session.Viewed{PropertyID: propertyID(1), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-map"})
		return h.searched("srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D")
	})
}

func TestALateAnswerDoesNotBringTheCookieBack(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.Must(204, "POST", "/session/clear", cookie, "")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a := h.Ask("GET", "/session", cookie, ""); a.Cookie() == cookie {
				h.T.Error("named again")
			}
		})
	}
	all.Wait()
}

func TestAHalfDoneClearIsFinishedByTheNext(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.live(cookie)
	h.session(cookie)
	h.Redis.Hang()
	if a := h.Ask("POST", "/session/clear", cookie, ""); a.StatusCode != 503 {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	h.Redis.Heal()
	// Postgres done, Redis not: what a process leaves that dies in between.
	die := func() {
		h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
			VALUES ($1, true, false, now(), now())
			ON CONFLICT DO NOTHING`, cookie)
		h.Exec(`DELETE FROM bff_consumer.wishlist_anonymous WHERE guest_session_id = $1`, cookie)
		h.Exec(`DELETE FROM bff_consumer.outbox`)
	}
	die()
	h.Eventually("Redis is back", func() bool { return h.Ask("POST", "/session/clear", cookie, "").StatusCode == 204 })
	if got := h.left(cookie); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	cookie = h.guest()
	h.live(cookie)
	die()
	if a := h.Ask("GET", "/session", cookie, ""); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	if s := h.session(cookie); s.ID == cookie || len(s.RecentlyViewed) != 0 {
		t.Errorf("%+v", s)
	}
}
