package lua

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// scriptTests runs each script once, twice where that tells more, and checks what it did. It is run
// on a server that knows no script yet.
var scriptTests = map[string]func(t *testing.T, c redis.UniversalClient){
	"remove_buffered": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.Del(ctx, "spill")
		c.LPush(ctx, "spill", "a", "b", "a", "c", "d") // from the right: a b a c d
		for i, want := range []int64{2, 1, 0} {
			if n, err := RemoveBuffered(ctx, c, "spill", []string{"c", "a"}, 3); err != nil || n != want {
				t.Errorf("time %d: %d removed, %v", i, n, err)
			}
		}
		if left := c.LRange(ctx, "spill", 0, -1).Val(); !slices.Equal(left, []string{"d", "b"}) {
			t.Errorf("%v are left", left)
		}
		c.Del(ctx, "spill")
	},
	"set_unless_cleared": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.Del(ctx, "{s}:it", "{s}:cleared")
		put := func(value string) (kept int64) {
			pipe := c.Pipeline()
			cmd := SetUnlessCleared(ctx, pipe, "{s}:it", "{s}:cleared", value, 90*time.Second)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
			kept, _ = cmd.Int64()
			return kept
		}
		if put("a") != 1 || put("b") != 1 || c.Get(ctx, "{s}:it").Val() != "b" {
			t.Error("not kept")
		}
		if left := c.PTTL(ctx, "{s}:it").Val(); left <= 80*time.Second || left > 90*time.Second {
			t.Errorf("for %v", left)
		}
		c.Del(ctx, "{s}:it")
		c.Set(ctx, "{s}:cleared", 1, 0)
		if put("c") != 0 || c.Exists(ctx, "{s}:it").Val() != 0 {
			t.Error("kept for a session that was cleared")
		}
	},
	"acquire, extend, release": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		won, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if err != nil || !won.Acquired || won.ServerTime == 0 || won.Entry != "" {
			t.Fatalf("%+v, %v", won, err)
		}
		if lost, err := Acquire(ctx, c, "lock:{e}", "e", "you", time.Second); err != nil || lost.Acquired {
			t.Errorf("taken twice: %+v, %v", lost, err)
		}
		if ok, err := Extend(ctx, c, "lock:{e}", "you", time.Second); err != nil || ok {
			t.Errorf("a stranger extended it: %v", err)
		}
		if ok, err := Extend(ctx, c, "lock:{e}", "me", time.Second); err != nil || !ok {
			t.Errorf("the owner could not extend it: %v", err)
		}
		if ok, err := Release(ctx, c, "lock:{e}", "you"); err != nil || ok {
			t.Errorf("a stranger released it: %v", err)
		}
		if ok, err := Release(ctx, c, "lock:{e}", "me"); err != nil || !ok {
			t.Errorf("the owner could not release it: %v", err)
		}
	},
	"acquire in spite of what was written by hand": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.RPush(ctx, "e", "no entry")
		c.RPush(ctx, "lock:{e}", "no lock")
		if got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second); err != nil || !got.Acquired || got.Entry != "" {
			t.Fatalf("keys of a wrong type: %+v, %v", got, err)
		}
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x"), time.Minute); err != nil || !ok || c.Get(ctx, "e").Val() != "x" {
			t.Errorf("the entry did not heal: %v", err)
		}
		c.Set(ctx, "lock:{e}", "for ever", 0)
		got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if ttl := c.PTTL(ctx, "lock:{e}").Val(); err != nil || got.Acquired || got.Entry != "x" || ttl <= 0 || ttl > time.Second {
			t.Errorf("a lock without end: %+v, %v, lives %v", got, err, ttl)
		}
		c.Del(ctx, "e", "lock:{e}")
	},
	"acquire again, for want of an answer": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		for range 2 {
			if got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second); err != nil || !got.Acquired {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		c.Set(ctx, "lock:{e}", "you", time.Minute)
		Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if ttl := c.PTTL(ctx, "lock:{e}").Val(); ttl <= time.Second {
			t.Errorf("cut another's lease to %v", ttl)
		}
		c.Del(ctx, "lock:{e}")
	},
	"remove_last_seen": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.ZAdd(ctx, "seen", redis.Z{Score: 1764979200123, Member: "gone"}, redis.Z{Score: 1764979200124, Member: "back"})
		if err := RemoveLastSeen(ctx, c, "seen", map[string]int64{"gone": 1764979200123, "back": 1764979200123, "never": 1}); err != nil {
			t.Fatal(err)
		}
		if left := c.ZRange(ctx, "seen", 0, -1).Val(); !slices.Equal(left, []string{"back"}) {
			t.Errorf("left: %v", left)
		}
		c.Del(ctx, "seen")
	},
	"store": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x"), time.Minute); err != nil || ok {
			t.Errorf("stored without the lock: %v", err)
		}
		c.Set(ctx, "lock:{e}", "me", time.Second)
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x\x00y"), time.Minute); err != nil || !ok {
			t.Errorf("not stored with the lock: %v", err)
		}
		if got := c.Get(ctx, "e").Val(); got != "x\x00y" || c.Exists(ctx, "lock:{e}").Val() != 0 {
			t.Errorf("holds %q", got)
		}
	},
	"spend, refund": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		const gain, whole = 10 * time.Second, 20 * time.Second
		spend := func() SpendResult {
			pipe := c.Pipeline()
			cmd := Spend(ctx, pipe, "b", gain, whole)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
			spent, err := ParseSpend(cmd)
			if now := c.Time(ctx).Val().UnixMicro(); err != nil || spent.ServerTime > now || spent.ServerTime < now-time.Minute.Microseconds() {
				t.Errorf("at %d, %v", spent.ServerTime, err)
			}
			return spent
		}
		refund := func() {
			pipe := c.Pipeline()
			Refund(ctx, pipe, "b", gain)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
		}
		c.Del(ctx, "b")
		if s := spend(); !s.Taken || s.UntilFull != gain {
			t.Errorf("of a full one: %+v", s)
		}
		if s := spend(); !s.Taken || s.UntilFull <= gain || s.UntilFull > whole {
			t.Errorf("the last: %+v", s)
		}
		if s := spend(); s.Taken || s.UntilFull <= gain || s.UntilFull > whole {
			t.Errorf("of an empty one: %+v", s)
		}
		if ttl := c.PTTL(ctx, "b").Val(); ttl <= gain || ttl > whole {
			t.Errorf("kept for %s", ttl)
		}
		refund()
		if ttl := c.PTTL(ctx, "b").Val(); ttl <= 0 || ttl > gain {
			t.Errorf("kept for %s after a refund", ttl)
		}
		if s := spend(); !s.Taken {
			t.Errorf("what was given back: %+v", s)
		}
		for range 3 {
			refund()
		}
		if c.Exists(ctx, "b").Val() != 0 {
			t.Error("fuller than full")
		}
	},
	"register, detach": func(t *testing.T, c redis.UniversalClient) {
		ctx, now := t.Context(), time.Now()
		tag := TagKeys{"tag:{a}", "tag:{a}:busted", "tag:{a}:busting"}
		pipe := c.Pipeline()
		registered := Register(ctx, pipe, tag, "e1", now, now.Add(time.Minute))
		if err := Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
		if at, err := registered.Int64(); err != nil || at != 0 {
			t.Errorf("busted at %d, %v", at, err)
		}
		detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 9)
		if err := Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
		taken, err := detached.Result()
		if err != nil || taken.ServerTime == 0 || taken.More || !slices.Equal(taken.Entries, []string{"e1"}) {
			t.Errorf("%+v %v", taken, err)
		}
		again := Register(ctx, pipe, tag, "e2", now, now.Add(time.Minute))
		Exec(ctx, pipe)
		if busted, err := again.Int64(); err != nil || busted != taken.ServerTime {
			t.Errorf("busted at %d, not %d: %v", busted, taken.ServerTime, err)
		}
	},
	"update_session": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		visit := func(v SessionUpdate) SessionUpdateResult {
			pipe := c.Pipeline()
			v.Session, v.History, v.Cleared = "s:{1}", "s:{1}:history", "s:{1}:cleared"
			v.TTL, v.MaxHistory = time.Minute, 2
			cmd := UpdateSession(ctx, pipe, v)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
			noted, err := ParseSessionUpdate(cmd)
			if err != nil {
				t.Fatal(err)
			}
			return noted
		}
		touch := SessionUpdate{Changes: map[string]string{"a": "1"}, HistoryEntry: "x"}
		if noted := visit(touch); !noted.Missing || noted.Cleared || len(c.Keys(ctx, "*").Val()) != 0 {
			t.Errorf("a session that was lost: %+v", noted)
		}
		c.Set(ctx, "s:{1}:cleared", 1, time.Minute)
		if noted := visit(touch); !noted.Cleared || noted.Missing || len(c.Keys(ctx, "*").Val()) != 1 {
			t.Errorf("a session that was cleared: %+v", noted)
		}
		c.Del(ctx, "s:{1}:cleared")
		for _, entry := range []string{"1", "2", "3"} {
			if noted := visit(SessionUpdate{Create: true, Changes: map[string]string{"a": entry}, HistoryEntry: entry}); noted.Cleared || noted.Missing {
				t.Error("not written")
			}
		}
		if got := c.LRange(ctx, "s:{1}:history", 0, -1).Val(); !slices.Equal(got, []string{"3", "2"}) {
			t.Errorf("history %v", got)
		}
		if visit(SessionUpdate{}).Cleared || c.HGet(ctx, "s:{1}", "a").Val() != "3" {
			t.Error("a touch without changes")
		}
		if ttl := c.PTTL(ctx, "s:{1}").Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("lives %s", ttl)
		}
		c.Set(ctx, "s:{1}:cleared", 1, time.Minute)
		if !visit(SessionUpdate{Create: true, Changes: map[string]string{"a": "4"}}).Cleared {
			t.Error("a session that was cleared was written")
		}
	},
	"suspended": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		keys := SuspendedKeys{"set", "{set}:version", "{set}:restorer"}
		restore := func(token string, tenants ...string) string {
			v, err := RestoreSuspended(ctx, c, keys, token, tenants)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		change := func(change func(context.Context, redis.Scripter, SuspendedKeys, string) (bool, error), tenant string) bool {
			ok, err := change(ctx, c, keys, tenant)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if restore("me", "a") != "" {
			t.Error("restored without the right to")
		}
		c.Set(ctx, keys.RestoreToken, "me", 0)
		if change(Suspend, "a") || restore("me", "b") != "" {
			t.Error("a set that was changed meanwhile was restored")
		}
		c.Set(ctx, keys.RestoreToken, "me", 0)
		v := restore("me", "a", "b")
		if len(v) < 16 || c.Get(ctx, keys.Version).Val() != v {
			t.Fatalf("version %q", v)
		}
		c.Set(ctx, keys.RestoreToken, "you", 0)
		if restore("you", "c") != "" {
			t.Error("restored twice")
		}
		if !change(Suspend, "c") || !change(Reinstate, "a") {
			t.Error("not changed")
		}
		got := c.SMembers(ctx, "set").Val()
		slices.Sort(got)
		if !slices.Equal(got, []string{"b", "c"}) || c.Get(ctx, keys.Version).Val() <= v {
			t.Errorf("%v", got)
		}
	},
}

func TestScripts_RunOnRealServer(t *testing.T) {
	for name, run := range scriptTests {
		t.Run(name, func(t *testing.T) { run(t, redistest.New(t)) })
	}
}

func TestScripts_RunAfterScriptFlush(t *testing.T) {
	for name, run := range scriptTests {
		t.Run(name, func(t *testing.T) {
			c := redistest.New(t)
			run(t, c)
			c.FlushAll(context.Background())
			if err := c.ScriptFlush(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			run(t, c)
		})
	}
}
