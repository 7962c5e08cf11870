package wishlist

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func routes(p *wiring.Deps) map[string]web.Handler {
	return map[string]web.Handler{
		"GET " + web.BasePath + "/wishlist":                 NewList(p, newStore(p)).Serve,
		"POST " + web.BasePath + "/wishlist":                NewAdd(p, newStore(p)).Serve,
		"DELETE " + web.BasePath + "/wishlist/{propertyId}": NewRemove(p, newStore(p)).Serve,
	}
}

func addBody(n int, more ...string) string {
	return fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"source":"detail"%s}`, propertyID(n), tenantID(n), strings.Join(more, ""))
}

// listBody is the body of GET /wishlist.
type listBody struct {
	Size  int
	Items []struct {
		WishlistID, PropertyID, TenantID, AddedAt, Source, Note string
		Listing                                                 *struct {
			Name      struct{ Default string }
			BrandPeek struct {
				PrimaryColor string
				Neutral      bool
			}
			RateSnapshot *struct{}
		}
	}
	Degraded []struct{ Part, Reason string }
}

func (h *harness) getList(cookie string, headers ...string) (l listBody) {
	h.T.Helper()
	h.MustDo(200, "GET", "/wishlist", cookie, "", headers...).Decode(h.T, &l)
	return l
}

// newGuest begins a session and returns its id.
func (h *harness) newGuest() string {
	h.T.Helper()
	return h.MustDo(200, "GET", "/wishlist", "", "").SessionCookie()
}

// copyLen returns the number of entries of the copy in Redis.
func (h *harness) copyLen(cookie string) int {
	h.T.Helper()
	n, err := h.RDB.LLen(context.Background(), h.Deps.Keys.SessionPart(cookie, "wishlist")).Result()
	if err != nil {
		h.T.Fatal(err)
	}
	return int(n)
}

func TestWishlist_AddListRemove(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.MustDo(201, "POST", "/wishlist", "", addBody(1, `,"note":"کنار دریا"`))
	cookie := first.SessionCookie()
	var added struct {
		Item struct{ WishlistID, PropertyID, TenantID, Note, Source, AddedAt string }
		Size int
	}
	first.Decode(t, &added)
	if added.Size != 1 || added.Item.PropertyID != propertyID(1) || added.Item.TenantID != tenantID(1) || added.Item.Note != "کنار دریا" {
		t.Errorf(`got %s; want added.Size = 1, added.Item.PropertyID = %v, added.Item.TenantID = %v, added.Item.Note = "کنار دریا"`, first.Text, propertyID(1), tenantID(1))
	}
	again := h.MustDo(200, "POST", "/wishlist", cookie, addBody(1, `,"note":"another"`))
	if again.Text != first.Text {
		t.Errorf("second add: got %s; want %s", again.Text, first.Text)
	}
	h.Advance(time.Minute)
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(2))
	l := h.getList(cookie, "Accept-Language", "fa-IR")
	if l.Size != 2 || len(l.Items) != 2 || l.Items[0].PropertyID != propertyID(2) || l.Items[1].WishlistID != added.Item.WishlistID || len(l.Degraded) != 0 {
		t.Fatalf("got %+v; want Size = 2, len(Items) = 2, Items[0].PropertyID = %v, Items[1].WishlistID = %v, len(Degraded) = 0", l, propertyID(2), added.Item.WishlistID)
	}
	card := l.Items[1].Listing
	if card == nil || card.Name.Default != "Hotel 1 (fa-IR)" || card.BrandPeek.PrimaryColor != "#aabbcc" || card.BrandPeek.Neutral || card.RateSnapshot != nil {
		t.Errorf(`got %+v; want the Persian name, a brand and no rate`, card)
	}
	for range 2 {
		h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "")
	}
	if l = h.getList(cookie); l.Size != 1 || l.Items[0].PropertyID != propertyID(2) {
		t.Errorf("got %+v; want Size = 1, Items[0].PropertyID = %v", l, propertyID(2))
	}
	if back := h.MustDo(201, "POST", "/wishlist", cookie, addBody(1)); !strings.Contains(back.Text, added.Item.WishlistID) {
		t.Errorf("got %s; want body containing %v", back.Text, added.Item.WishlistID)
	}
	if n := h.copyLen(cookie); n != 2 {
		t.Errorf("got %d entries in the copy; want 2", n)
	}
	if added, removed := h.Events("wishlist.added"), h.Events("wishlist.removed"); len(added) != 3 || len(removed) != 1 {
		t.Errorf("got %d added, %d removed events; want 3 and 1", len(added), len(removed))
	}
}

func TestWishlistAdd_WarmUsesTwoRedisRoundTrips(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(1))
	uses := h.Deps.DB.Stat().AcquireCount()
	h.RoundTrips.TakeCount()
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(2))
	if n := h.RoundTrips.TakeCount(); n != 2 {
		t.Errorf("got %d Redis round trips; want 2", n)
	}
	if n := h.Deps.DB.Stat().AcquireCount() - uses; n != 1 {
		t.Errorf("got %d uses of Postgres; want 1", n)
	}
	h.getList(cookie)
	calls := h.upstreams.Calls("hotel") + h.upstreams.Calls("theme")
	h.getList(cookie)
	if n := h.upstreams.Calls("hotel") + h.upstreams.Calls("theme") - calls; n != 0 {
		t.Errorf("second list: got %d upstream calls; want 0", n)
	}
}

func TestWishlistAdd_ConcurrentAddsStopAtLimit(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	queue := make(chan int)
	for range 40 { // more clients than connections to Postgres
		all.Go(func() {
			for n := range queue {
				a := h.Do("POST", "/wishlist", cookie, addBody(n%160))
				// a store was too slow and nothing was stored
				for a.StatusCode == 503 || a.StatusCode == 504 {
					a = h.Do("POST", "/wishlist", cookie, addBody(n%160))
				}
				mu.Lock()
				got[fmt.Sprintf("%d %s", a.StatusCode, strings.TrimPrefix(a.Code, "MELMASTOON.BFF.CONSUMER."))]++
				mu.Unlock()
			}
		})
	}
	for n := range 200 {
		queue <- n
	}
	close(queue)
	all.Wait()
	if full := got["422 WISHLIST_LIMIT_EXCEEDED"]; got["201 "] != 100 || got["201 "]+got["200 "]+full != 200 {
		t.Errorf(`got %v; want 100 times 201, the others 200 or 422`, got)
	}
	if n := h.copyLen(cookie); n != 100 {
		t.Errorf("got %d entries in the copy; want 100", n)
	}
	if l := h.getList(cookie); l.Size != 100 {
		t.Errorf("got %d items; want 100", l.Size)
	}
	if n := len(h.Events("wishlist.added")); n != 100 {
		t.Errorf("got %d events; want 100", n)
	}
}

func TestWishlist_RestoredAfterRedisDataLoss(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for n := range 3 {
		h.MustDo(201, "POST", "/wishlist", cookie, addBody(n))
	}
	h.RDB.FlushAll(t.Context())
	a := h.MustDo(200, "GET", "/wishlist", cookie, "")
	var l listBody
	a.Decode(t, &l)
	if a.SessionCookie() != cookie || l.Size != 3 || h.copyLen(cookie) != 3 {
		t.Errorf("got cookie %s, %d entries in the copy: %s; want %s, 3", a.SessionCookie(), h.copyLen(cookie), a.Text, cookie)
	}
	h.RDB.FlushAll(t.Context())
	if again := h.MustDo(200, "POST", "/wishlist", cookie, addBody(1)); again.SessionCookie() != cookie {
		t.Errorf("got %s; want cookie = %v", again.Text, cookie)
	}
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(9))
	if n := h.copyLen(cookie); n != 4 {
		t.Errorf("got %d entries in the copy; want 4", n)
	}
}

func TestWishlistList_UnavailableHotelHasNullListing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for n := 1; n <= 3; n++ {
		h.MustDo(201, "POST", "/wishlist", cookie, addBody(n))
	}
	h.upstreams.NotFound(propertyID(2))
	if err := tenants.New(h.Deps.Redis, h.Deps.DB, h.Deps.Keys, h.Now).Suspend(t.Context(), tenantID(3)); err != nil {
		t.Fatal(err)
	}
	uuid, err := id.UUID(id.Tenant, tenantID(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.Exec(t.Context(), `
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason) VALUES ($1, now(), 'x')`, uuid); err != nil {
		t.Fatal(err)
	}
	l := h.getList(cookie)
	if l.Size != 3 || l.Items[0].Listing != nil || l.Items[1].Listing != nil || l.Items[2].Listing == nil || len(l.Degraded) != 0 {
		t.Errorf("got %+v; want Size = 3, Items[0].Listing = nil, Items[1].Listing = nil, Items[2].Listing set, len(Degraded) = 0", l)
	}
}

func TestWishlistList_UpstreamFailureDegrades(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(1))
	h.upstreams.Fail("theme")
	if l := h.getList(cookie); len(l.Degraded) != 1 || l.Degraded[0].Part != "theme" || !l.Items[0].Listing.BrandPeek.Neutral {
		t.Errorf("without theme-config: got %+v; want a neutral brand", l)
	}
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(2))
	h.upstreams.Recover("theme")
	h.upstreams.Hang("search")
	began := time.Now()
	l := h.getList(cookie)
	if took := time.Since(began); took > web.Budget+functest.SlackTime {
		t.Errorf("got an answer after %s; want at most %s", took, web.Budget+functest.SlackTime)
	}
	if l.Size != 2 || l.Items[0].Listing != nil || l.Items[1].Listing == nil || l.Degraded[0].Part != "search" {
		t.Errorf("without search-aggregation: got %+v; want the cached card only", l)
	}
}

func TestWishlist_WithoutPostgresServesReadOnlyCopy(t *testing.T) {
	t.Parallel()
	for name, breakPostgres := range map[string]func(*harness){
		"broken": func(h *harness) { h.PostgresProxy.Break() }, "hanging": func(h *harness) { h.PostgresProxy.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			cookie := h.newGuest()
			h.MustDo(201, "POST", "/wishlist", cookie, addBody(1, `,"note":"mine"`))
			breakPostgres(h)
			for _, c := range [][2]string{{"POST", addBody(2)}, {"DELETE", ""}} {
				path := "/wishlist"
				if c[0] == "DELETE" {
					path += "/" + propertyID(1)
				}
				if a := h.Do(c[0], path, cookie, c[1]); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" || a.Header.Get("Retry-After") == "" {
					t.Errorf(`%s: got %d %s; want status 503, code = "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE", non-empty Retry-After`, c[0], a.StatusCode, a.Text)
				}
			}
			l := h.getList(cookie)
			if l.Size != 1 || l.Items[0].Note != "mine" || l.Items[0].Listing == nil || l.Degraded[0].Part != "wishlist" {
				t.Errorf("from the copy: got %+v; want 1 item with a card", l)
			}
			h.RDB.FlushAll(t.Context())
			if a := h.Do("GET", "/wishlist", cookie, ""); a.StatusCode != 503 {
				t.Errorf("without a copy: got %d %s; want 503", a.StatusCode, a.Text)
			}
			h.PostgresProxy.Heal()
			h.Eventually("the list after Postgres is back", func() bool { return h.Do("GET", "/wishlist", cookie, "").StatusCode == 200 })
			if l := h.getList(cookie); l.Size != 1 || len(l.Degraded) != 0 {
				t.Errorf("got %+v; want Size = 1, len(Degraded) = 0", l)
			}
		})
	}
}

func TestWishlist_WorksWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(1))
	h.Redis.Stop()
	a := h.MustDo(201, "POST", "/wishlist", cookie, addBody(2))
	if a.SessionCookie() != cookie {
		t.Errorf("got cookie %s; want %s", a.SessionCookie(), cookie)
	}
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "")
	if l := h.getList(cookie); l.Size != 1 || l.Items[0].PropertyID != propertyID(2) {
		t.Errorf("got %+v; want Size = 1, Items[0].PropertyID = %v", l, propertyID(2))
	}
	if n := len(h.Events("wishlist.")); n != 3 {
		t.Errorf("got %d events; want 3", n)
	}
	h.Redis.Start()
	h.Eventually("the copy is repaired", func() bool {
		h.getList(cookie)
		return h.RDB.LLen(t.Context(), h.Deps.Keys.SessionPart(cookie, "wishlist")).Val() == 1
	})
}

func TestWishlist_OptOutSurvivesRedisLoss(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	_, err := h.DB.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at) VALUES ($1, false, false, now())`, cookie)
	if err != nil {
		t.Fatal(err)
	}
	before := len(h.Events(""))
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(1)) // the copy in Redis still has consent
	h.RDB.FlushAll(t.Context())
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(2))
	h.Redis.Stop()
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(3))
	if n := len(h.Events("")); n != before {
		t.Errorf("got %d events more; want 0", n-before)
	}
}

func TestWishlistAdd_DuringErasureIsRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	_, err := h.DB.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, true, false, now(), now())`, cookie) // a clear that has not erased Redis yet
	if err != nil {
		t.Fatal(err)
	}
	if a := h.Do("POST", "/wishlist", cookie, addBody(1)); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s; want status 503, non-empty Retry-After", a.StatusCode, a.Text)
	}
	if n := h.Count("wishlist_anonymous"); n != 0 {
		t.Errorf("got %d rows; want 0", n)
	}
}

func TestWishlist_EventsMatchList(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for n := range 3 {
		h.MustDo(201, "POST", "/wishlist", cookie, addBody(n), "X-Request-Id", "01H8YN7QV4D8KZ4F8Y5CK4MV3D")
	}
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(0), cookie, "")
	added := h.Events("wishlist.added")
	for n, e := range added {
		p := e.Payload.(event.WishlistAdded)
		if e.SessionID != cookie || e.RequestID == "" || p.WishlistSize != n+1 || p.GuestSessionID != cookie || p.Source != "detail" || !p.AddedAt.Equal(h.Now().Add(time.Duration(n)*time.Millisecond)) {
			t.Errorf(`got %+v; want SessionID = %v, non-empty RequestID, WishlistSize = %v, GuestSessionID = %v, Source = "detail", AddedAt.Equal(h.Now().Add(time.Duration(n)*time.Millisecond))`, e, cookie, n+1, cookie)
		}
	}
	if p := h.Events("wishlist.removed")[0].Payload.(event.WishlistRemoved); p.WishlistSize != 2 || p.TenantID != tenantID(0) || p.WishlistID != added[0].Payload.(event.WishlistAdded).WishlistID {
		t.Errorf("got %+v; want WishlistSize = 2, TenantID = %v, WishlistID = %v", p, tenantID(0), added[0].Payload.(event.WishlistAdded).WishlistID)
	}
}
