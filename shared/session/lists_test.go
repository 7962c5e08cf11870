package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

func (d *harness) pushViewed(t *testing.T, s *Session, viewed ...ViewedProperty) {
	t.Helper()
	pipe := d.rdb.Pipeline()
	d.EnqueueViewed(t.Context(), pipe, s, viewed...)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Error(err)
	}
}

func (d *harness) lists(t *testing.T, id string) *Lists {
	t.Helper()
	pipe := d.rdb.Pipeline()
	l := d.EnqueueLists(t.Context(), pipe, id)
	pipe.Exec(t.Context())
	return l
}

func viewedHotel(n int) ViewedProperty {
	return ViewedProperty{PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-list"}
}

func TestStoreEnqueueViewed_DeduplicatesNewestFirst(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	d.pushViewed(t, s, viewedHotel(1), viewedHotel(2), viewedHotel(1), viewedHotel(3), viewedHotel(2))
	recent := d.lists(t, s.ID).RecentlyViewed(s)
	if len(recent) != 3 {
		t.Fatalf("%s", recent)
	}
	for i, n := range []int{2, 3, 1} {
		if !strings.Contains(string(recent[i]), viewedHotel(n).PropertyID) {
			t.Errorf("at %d: %s", i, recent[i])
		}
	}
	d.rdb.ScriptFlush(t.Context())
	for n := range 60 {
		d.pushViewed(t, s, viewedHotel(100+n))
	}
	if recent = d.lists(t, s.ID).RecentlyViewed(s); len(recent) != 50 || !strings.Contains(string(recent[0]), viewedHotel(159).PropertyID) {
		t.Errorf("%d kept, newest %s", len(recent), recent[0])
	}
	if ttl := d.rdb.TTL(t.Context(), d.keys.SessionPart(s.ID, "recent")).Val(); ttl <= 0 || ttl > TTL {
		t.Errorf("kept for %s", ttl)
	}
}

func TestStoreEnqueueViewed_ConcurrentPushesKeepListConsistent(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() { d.pushViewed(t, s, viewedHotel(n%70)) })
	}
	all.Wait()
	seen := map[string]bool{}
	recent := d.lists(t, s.ID).RecentlyViewed(s)
	for _, entry := range recent {
		seen[string(entry)] = true
	}
	if len(recent) != 50 || len(seen) != 50 {
		t.Errorf("%d entries, %d different", len(recent), len(seen))
	}
}

func TestLists_EmptyForAnotherSession(t *testing.T) {
	d := newHarness(t)
	s, other := d.request(t, ""), d.request(t, "")
	d.pushViewed(t, s, viewedHotel(1))
	l := d.lists(t, s.ID)
	if len(l.RecentlyViewed(other)) != 0 || len(l.History(other)) != 0 {
		t.Error("another session sees them")
	}
	var none *Lists
	if len(none.RecentlyViewed(s)) != 0 {
		t.Error("no lists hold something")
	}
	d.rdb.LPush(t.Context(), d.keys.SessionPart(s.ID, "recent"), "{broken")
	if got := d.lists(t, s.ID).RecentlyViewed(s); len(got) != 1 {
		t.Errorf("an entry that cannot be read: %s", got)
	}
}

func TestStoreEnqueueViewed_IgnoresClearedSession(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	if err := d.Purge(t.Context(), d.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	d.pushViewed(t, s, viewedHotel(1))
	if n := d.rdb.Exists(t.Context(), d.keys.SessionPart(s.ID, "recent")).Val(); n != 0 {
		t.Error("the list is back")
	}
}

func TestStorePurge_DeletesChallengeState(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	key := d.keys.SessionPart(s.ID, "challenge")
	d.rdb.Set(t.Context(), key, "proof-of-work", time.Hour)
	if err := d.Purge(t.Context(), d.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	if d.rdb.Exists(t.Context(), key).Val() != 0 {
		t.Error("it is still there")
	}
}
