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

// remaining returns the data of a session that is still stored, except the data kept for audit.
func (h *harness) remaining(cookie string) (found []string) {
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

func TestSessionClear_ErasesAllSessionData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie, other := h.newGuest(), h.newGuest()
	h.populate(cookie)
	h.populate(other)
	h.getSession(cookie)
	h.getSession(other)
	h.Exec("UPDATE bff_consumer.outbox SET published_at = now() WHERE topic LIKE '%.session.started.v1'")
	h.PostgresProxy.Break()
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`) // its event is buffered in Redis
	h.PostgresProxy.Heal()
	h.Eventually("Postgres is back", func() bool { return h.Deps.DB.Ping(context.Background()) == nil })
	before := len(h.remaining(other))
	h.Advance(time.Hour)
	a := h.MustDo(204, "POST", "/session/clear", cookie, "")
	if got := a.Header.Get("Set-Cookie"); !strings.HasPrefix(got, "gms_id=;") || !strings.Contains(got, "Max-Age=0") || !strings.Contains(got, "Path=/") || !strings.Contains(got, "HttpOnly") {
		t.Errorf(`got %s; want an expired gms_id cookie with Path=/ and HttpOnly`, got)
	}
	for _, found := range h.remaining(cookie) {
		if !strings.Contains(found, ":srs:") { // search sessions of the other guest
			t.Errorf("got %s; want it erased", found)
		}
	}
	if n := len(h.RDB.Keys(t.Context(), "*:srs:*").Val()); n != 1 {
		t.Errorf("got %d search sessions; want only the other guest's", n)
	}
	if n := h.RDB.Exists(t.Context(), h.Deps.Keys.Key("idem", "c-"+cookie)).Val(); n != 0 {
		t.Error("the copy of an idempotent answer was not erased")
	}
	if h.Count("outbox WHERE topic LIKE '%.session.started.v1'") != 2 || h.Count("handoff_replay_log WHERE guest_session_id = $1", cookie) != 1 || h.Count("bot_score_log WHERE guest_session_id = $1", cookie) != 1 {
		t.Error("published events or audit rows were erased")
	}
	if got := h.remaining(other); len(got) < before-1 {
		t.Errorf("other guest: got %v; want at least %d items", got, before-1)
	}
	ended := h.Events("session.ended")
	if len(ended) != 1 {
		t.Fatalf("got %d session.ended events; want 1", len(ended))
	}
	if e := ended[0].Payload.(event.SessionEnded); e.Reason != event.ExplicitClear || e.LifetimeSeconds != 3600 || e.GuestSessionID != cookie || !e.EndedAt.Equal(h.Now()) {
		t.Errorf("got %+v; want Reason = %v, LifetimeSeconds = 3600, GuestSessionID = %v, EndedAt.Equal(h.Now())", e, event.ExplicitClear, cookie)
	}
}

func TestSessionClear_IsIdempotent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.populate(cookie)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { h.Do("POST", "/session/clear", cookie, "") })
	}
	all.Wait()
	for range 2 {
		h.MustDo(204, "POST", "/session/clear", cookie, "")
	}
	if n := len(h.Events("session.ended")); n != 1 {
		t.Errorf("got %d session.ended events; want 1", n)
	}
	if got := h.remaining(cookie); len(got) != 0 {
		t.Errorf("got %v; want everything erased", got)
	}
	if n := h.Count("outbox WHERE topic LIKE '%.session.started.v1'"); n != 0 {
		t.Errorf("got %d session.started events; want 0", n)
	}
}

func TestSessionClear_WithoutSessionCreatesNone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, cookie := range []string{"", "gms_nonsense"} {
		a := h.MustDo(204, "POST", "/session/clear", cookie, "")
		if !strings.Contains(a.Header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf(`got %v; want Set-Cookie containing "Max-Age=0"`, a.Header)
		}
	}
	if n := len(h.Events("")) + h.Count("session_choice"); n != 0 {
		t.Errorf("got %d rows; want 0", n)
	}
	if keys := h.RDB.Keys(t.Context(), "*session*").Val(); len(keys) != 0 {
		t.Errorf("got keys %v; want none", keys)
	}
}

func TestSessionClear_ClearedCookieGetsNewSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.populate(cookie)
	h.MustDo(204, "POST", "/session/clear", cookie, "")
	h.RDB.FlushAll(t.Context()) // the record in Postgres decides, not the mark in Redis
	a := h.MustDo(200, "GET", "/session", cookie, "")
	var s sessionBody
	a.Decode(t, &s)
	if a.SessionCookie() == cookie || s.ID == cookie || len(s.WishlistRefs) != 0 {
		t.Errorf("got %s; want cookie != %v, ID != %v, len(WishlistRefs) = 0", a.Text, cookie, cookie)
	}
}

func TestSessionClear_OptedOutGuestEmitsNoEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest("DNT", "1")
	h.MustDo(204, "POST", "/session/clear", cookie, "", "DNT", "1")
	cookie = h.newGuest()
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`)
	h.MustDo(204, "POST", "/session/clear", cookie, "")
	if n := len(h.Events("session.ended")); n != 0 {
		t.Errorf("got %d session.ended events; want 0", n)
	}
}

func TestSessionClear_ConcurrentRequestsLeaveNoData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	store := wishlist.New(h.Deps.Redis, h.Deps.DB, h.Deps.Keys, h.Now)
	for range 5 {
		cookie := h.newGuest()
		h.populate(cookie)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for n := range 30 {
			all.Go(func() {
				<-begin
				switch n % 5 {
				case 0:
					h.runWritingRequest(cookie)
				case 1:
					w := wishlist.AddRequest{PropertyID: propertyID(n), TenantID: tenantID(n), Source: "list"}
					store.Add(context.Background(), cookie, w)
				case 2:
					h.Do("POST", "/session/locale", cookie, `{"locale":"ru"}`)
				case 3:
					h.Do("GET", "/session", cookie, "")
				case 4:
					h.Do("POST", "/session/consent", cookie, `{"consentMarketing":true}`)
				}
			})
		}
		all.Go(func() {
			<-begin
			if a := h.Do("POST", "/session/clear", cookie, ""); a.StatusCode != http.StatusNoContent {
				h.T.Errorf("got %d %s; want status %v", a.StatusCode, a.Text, http.StatusNoContent)
			}
		})
		close(begin)
		all.Wait()
		for _, found := range h.remaining(cookie) {
			if !strings.Contains(found, ":srs:") {
				t.Errorf("got %s; want it erased", found)
			}
		}
		if n := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", cookie); n > 1 {
			t.Errorf("got %d events; want at most 1", n)
		}
	}
}

// runWritingRequest runs a request of another function that writes every kind of session data.
func (h *harness) runWritingRequest(cookie string) {
	h.runRequest(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		h.Deps.Sessions.EnqueueViewed(ctx, pipe, s, session.ViewedProperty{PropertyID: propertyID(1), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-map"})
		return h.historyEntry("srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D")
	})
}

func TestSessionClear_LaterResponsesDoNotRestoreCookie(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.MustDo(204, "POST", "/session/clear", cookie, "")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a := h.Do("GET", "/session", cookie, ""); a.SessionCookie() == cookie {
				h.T.Error("got the cleared cookie again")
			}
		})
	}
	all.Wait()
}

func TestSessionClear_RetryCompletesPartialErasure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.populate(cookie)
	h.getSession(cookie)
	h.Redis.Hang()
	if a := h.Do("POST", "/session/clear", cookie, ""); a.StatusCode != 503 {
		t.Errorf("got %d %s; want status 503", a.StatusCode, a.Text)
	}
	h.Redis.Heal()
	// eraseInPostgres leaves what a process leaves that ends between Postgres and Redis.
	eraseInPostgres := func() {
		h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
			VALUES ($1, true, false, now(), now())
			ON CONFLICT DO NOTHING`, cookie)
		h.Exec(`DELETE FROM bff_consumer.wishlist_anonymous WHERE guest_session_id = $1`, cookie)
		h.Exec(`DELETE FROM bff_consumer.outbox`)
	}
	eraseInPostgres()
	h.Eventually("Redis is back", func() bool { return h.Do("POST", "/session/clear", cookie, "").StatusCode == 204 })
	if got := h.remaining(cookie); len(got) != 0 {
		t.Errorf("got %v; want everything erased", got)
	}
	cookie = h.newGuest()
	h.populate(cookie)
	eraseInPostgres()
	if a := h.Do("GET", "/session", cookie, ""); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s; want status 503, non-empty Retry-After", a.StatusCode, a.Text)
	}
	if s := h.getSession(cookie); s.ID == cookie || len(s.RecentlyViewed) != 0 {
		t.Errorf("got %+v; want ID != %v, len(RecentlyViewed) = 0", s, cookie)
	}
}
