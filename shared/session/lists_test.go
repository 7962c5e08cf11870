package session

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func (h *harness) pushViewed(t *testing.T, s *Session, viewed ...ViewedProperty) {
	t.Helper()
	h.exec(t, func(pipe redis.Pipeliner) { h.EnqueueViewed(t.Context(), pipe, s, viewed...) })
}

func (h *harness) lists(t *testing.T, id string) (l *Lists) {
	t.Helper()
	h.exec(t, func(pipe redis.Pipeliner) { l = h.EnqueueLists(t.Context(), pipe, id) })
	return l
}

// recentlyViewed returns the decoded list "recent" of a session.
func (h *harness) recentlyViewed(t *testing.T, s *Session) (viewed []ViewedProperty) {
	t.Helper()
	for _, entry := range h.lists(t, s.ID).RecentlyViewed(s) {
		var v ViewedProperty
		if err := json.Unmarshal(entry, &v); err != nil {
			t.Fatal(err)
		}
		viewed = append(viewed, v)
	}
	return viewed
}

// viewedProperty returns a view of property n.
func viewedProperty(n int) ViewedProperty {
	return ViewedProperty{PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-list"}
}

func TestStoreEnqueueViewed_DeduplicatesNewestFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	h.pushViewed(t, s, viewedProperty(1), viewedProperty(2), viewedProperty(1), viewedProperty(3), viewedProperty(2))
	want := []ViewedProperty{viewedProperty(2), viewedProperty(3), viewedProperty(1)}
	if diff := cmp.Diff(want, h.recentlyViewed(t, s)); diff != "" {
		t.Errorf("viewed (-want +got):\n%s", diff)
	}
	h.rdb.ScriptFlush(t.Context())
	for n := range 60 {
		h.pushViewed(t, s, viewedProperty(100+n))
	}
	got := h.recentlyViewed(t, s)
	if len(got) != maxViewed || got[0] != viewedProperty(159) {
		t.Errorf("got %d views, newest %+v; want %d, newest %+v", len(got), got[0], maxViewed, viewedProperty(159))
	}
	if ttl := h.rdb.TTL(t.Context(), h.keys.SessionPart(s.ID, "recent")).Val(); ttl <= 0 || ttl > TTL {
		t.Errorf("the list expires in %s, want at most %s", ttl, TTL)
	}
}

func TestStoreEnqueueViewed_ConcurrentPushesKeepListConsistent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() { h.pushViewed(t, s, viewedProperty(n%70)) })
	}
	all.Wait()
	distinct := map[ViewedProperty]bool{}
	got := h.recentlyViewed(t, s)
	for _, v := range got {
		distinct[v] = true
	}
	if len(got) != maxViewed || len(distinct) != maxViewed {
		t.Errorf("got %d views of %d properties, want %d of %d", len(got), len(distinct), maxViewed, maxViewed)
	}
}

func TestLists_EmptyForAnotherSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, other := h.request(t, ""), h.request(t, "")
	h.pushViewed(t, s, viewedProperty(1))
	l := h.lists(t, s.ID)
	if viewed, history := l.RecentlyViewed(other), l.History(other); len(viewed) != 0 || len(history) != 0 {
		t.Errorf("another session gets %s and %s, want nothing", viewed, history)
	}
	var none *Lists
	if got := none.RecentlyViewed(s); len(got) != 0 {
		t.Errorf("nil lists have %s, want nothing", got)
	}
}

func TestLists_SkipMalformedEntries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	h.pushViewed(t, s, viewedProperty(1))
	h.rdb.LPush(t.Context(), h.keys.SessionPart(s.ID, "recent"), "{broken")
	if diff := cmp.Diff([]ViewedProperty{viewedProperty(1)}, h.recentlyViewed(t, s)); diff != "" {
		t.Errorf("viewed (-want +got):\n%s", diff)
	}
}

func TestStoreEnqueueViewed_IgnoresClearedSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	if err := h.Purge(t.Context(), h.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	h.pushViewed(t, s, viewedProperty(1))
	if got := h.recentlyViewed(t, s); len(got) != 0 {
		t.Errorf("a cleared session has %+v, want nothing", got)
	}
}

func TestStorePurge_DeletesChallengeState(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	key := h.keys.SessionPart(s.ID, "challenge")
	h.rdb.Set(t.Context(), key, "proof-of-work", time.Hour)
	if err := h.Purge(t.Context(), h.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	if h.rdb.Exists(t.Context(), key).Val() != 0 {
		t.Errorf("%s still exists", key)
	}
}
