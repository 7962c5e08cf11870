package lua

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// scriptTests runs every script and checks the effects, on a server that does not know the scripts
// yet.
var scriptTests = map[string]func(t *testing.T, c redis.UniversalClient){
	"remove_buffered": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.Del(ctx, "spill")
		c.LPush(ctx, "spill", "a", "b", "a", "c", "d") // from the right: a b a c d
		for i, want := range []int64{2, 1, 0} {
			if n, err := RemoveBuffered(ctx, c, "spill", []string{"c", "a"}, 3); err != nil || n != want {
				t.Errorf("call %d: got %d rows removed, %v, want %d", i, n, err, want)
			}
		}
		if left := c.LRange(ctx, "spill", 0, -1).Val(); !slices.Equal(left, []string{"d", "b"}) {
			t.Errorf("got rows %v, want [d b]", left)
		}
		c.Del(ctx, "spill")
	},
	"set_unless_cleared": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.Del(ctx, "{s}:key", "{s}:cleared")
		put := func(value string) (kept int64) {
			pipe := c.Pipeline()
			cmd := SetUnlessCleared(ctx, pipe, "{s}:key", "{s}:cleared", value, 90*time.Second)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
			kept, _ = cmd.Int64()
			return kept
		}
		if put("a") != 1 || put("b") != 1 || c.Get(ctx, "{s}:key").Val() != "b" {
			t.Error("the value was not stored")
		}
		if left := c.PTTL(ctx, "{s}:key").Val(); left <= 80*time.Second || left > 90*time.Second {
			t.Errorf("got TTL %v, want about 90s", left)
		}
		c.Del(ctx, "{s}:key")
		c.Set(ctx, "{s}:cleared", 1, 0)
		if put("c") != 0 || c.Exists(ctx, "{s}:key").Val() != 0 {
			t.Error("stored for a cleared session")
		}
	},
	"acquire, extend, release": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		won, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if err != nil || !won.Acquired || won.ServerTime == 0 || won.Entry != "" {
			t.Fatalf("got %+v, %v, want an acquired lock and no entry", won, err)
		}
		if lost, err := Acquire(ctx, c, "lock:{e}", "e", "you", time.Second); err != nil || lost.Acquired {
			t.Errorf("acquire a held lock: got %+v, %v", lost, err)
		}
		if ok, err := Extend(ctx, c, "lock:{e}", "you", time.Second); err != nil || ok {
			t.Errorf("another token extended the lock: %v", err)
		}
		if ok, err := Extend(ctx, c, "lock:{e}", "me", time.Second); err != nil || !ok {
			t.Errorf("the owner could not extend the lock: %v", err)
		}
		if ok, err := Release(ctx, c, "lock:{e}", "you"); err != nil || ok {
			t.Errorf("another token released the lock: %v", err)
		}
		if ok, err := Release(ctx, c, "lock:{e}", "me"); err != nil || !ok {
			t.Errorf("the owner could not release the lock: %v", err)
		}
	},
	"acquire repairs keys written by hand": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		c.RPush(ctx, "e", "not an entry")
		c.RPush(ctx, "lock:{e}", "not a lock")
		if got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second); err != nil || !got.Acquired || got.Entry != "" {
			t.Fatalf("keys of a wrong type: got %+v, %v, want an acquired lock", got, err)
		}
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x"), time.Minute); err != nil || !ok || c.Get(ctx, "e").Val() != "x" {
			t.Errorf("the entry of a wrong type was not overwritten: %v", err)
		}
		c.Set(ctx, "lock:{e}", "other", 0)
		got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if ttl := c.PTTL(ctx, "lock:{e}").Val(); err != nil || got.Acquired || got.Entry != "x" || ttl <= 0 || ttl > time.Second {
			t.Errorf("lock without a TTL: got %+v, %v, TTL %v", got, err, ttl)
		}
		c.Del(ctx, "e", "lock:{e}")
	},
	"acquire again after a lost reply": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		for range 2 {
			if got, err := Acquire(ctx, c, "lock:{e}", "e", "me", time.Second); err != nil || !got.Acquired {
				t.Fatalf("got %+v, %v, want an acquired lock", got, err)
			}
		}
		c.Set(ctx, "lock:{e}", "you", time.Minute)
		Acquire(ctx, c, "lock:{e}", "e", "me", time.Second)
		if ttl := c.PTTL(ctx, "lock:{e}").Val(); ttl <= time.Second {
			t.Errorf("got TTL %v of another token's lock, want a minute", ttl)
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
			t.Errorf("got sessions %v, want [back]", left)
		}
		c.Del(ctx, "seen")
	},
	"store": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x"), time.Minute); err != nil || ok {
			t.Errorf("Store without the lock succeeded: %v", err)
		}
		c.Set(ctx, "lock:{e}", "me", time.Second)
		if ok, err := Store(ctx, c, "e", "lock:{e}", "me", []byte("x\x00y"), time.Minute); err != nil || !ok {
			t.Errorf("Store with the lock failed: %v", err)
		}
		if got := c.Get(ctx, "e").Val(); got != "x\x00y" || c.Exists(ctx, "lock:{e}").Val() != 0 {
			t.Errorf("got entry %q, or the lock still exists", got)
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
				t.Errorf("got server time %d, %v, want about %d", spent.ServerTime, err, now)
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
			t.Errorf("full bucket: got %+v", s)
		}
		if s := spend(); !s.Taken || s.UntilFull <= gain || s.UntilFull > whole {
			t.Errorf("last token: got %+v", s)
		}
		if s := spend(); s.Taken || s.UntilFull <= gain || s.UntilFull > whole {
			t.Errorf("empty bucket: got %+v", s)
		}
		if ttl := c.PTTL(ctx, "b").Val(); ttl <= gain || ttl > whole {
			t.Errorf("got TTL %s", ttl)
		}
		refund()
		if ttl := c.PTTL(ctx, "b").Val(); ttl <= 0 || ttl > gain {
			t.Errorf("after a refund: got TTL %s", ttl)
		}
		if s := spend(); !s.Taken {
			t.Errorf("after a refund: got %+v, want a taken token", s)
		}
		for range 3 {
			refund()
		}
		if c.Exists(ctx, "b").Val() != 0 {
			t.Error("a refund to a full bucket created a key")
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
			t.Errorf("got invalidation time %d, %v, want 0", at, err)
		}
		detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 9)
		if err := Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
		taken, err := detached.Result()
		if err != nil || taken.ServerTime == 0 || taken.More || !slices.Equal(taken.Entries, []string{"e1"}) {
			t.Errorf("got %+v, %v, want the entry e1", taken, err)
		}
		again := Register(ctx, pipe, tag, "e2", now, now.Add(time.Minute))
		Exec(ctx, pipe)
		if at, err := again.Int64(); err != nil || at != taken.ServerTime {
			t.Errorf("got invalidation time %d, %v, want %d", at, err, taken.ServerTime)
		}
	},
	"update_session": func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		update := func(v SessionUpdate) SessionUpdateResult {
			pipe := c.Pipeline()
			v.Session, v.History, v.Cleared = "s:{1}", "s:{1}:history", "s:{1}:cleared"
			v.TTL, v.MaxHistory = time.Minute, 2
			cmd := UpdateSession(ctx, pipe, v)
			if err := Exec(ctx, pipe); err != nil {
				t.Fatal(err)
			}
			result, err := ParseSessionUpdate(cmd)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		touch := SessionUpdate{Changes: map[string]string{"a": "1"}, HistoryEntry: "x"}
		if result := update(touch); !result.Missing || result.Cleared || len(c.Keys(ctx, "*").Val()) != 0 {
			t.Errorf("missing session: got %+v", result)
		}
		c.Set(ctx, "s:{1}:cleared", 1, time.Minute)
		if result := update(touch); !result.Cleared || result.Missing || len(c.Keys(ctx, "*").Val()) != 1 {
			t.Errorf("cleared session: got %+v", result)
		}
		c.Del(ctx, "s:{1}:cleared")
		for _, entry := range []string{"1", "2", "3"} {
			if result := update(SessionUpdate{Create: true, Changes: map[string]string{"a": entry}, HistoryEntry: entry}); result.Cleared || result.Missing {
				t.Error("the session was not written")
			}
		}
		if got := c.LRange(ctx, "s:{1}:history", 0, -1).Val(); !slices.Equal(got, []string{"3", "2"}) {
			t.Errorf("got history %v, want [3 2]", got)
		}
		if update(SessionUpdate{}).Cleared || c.HGet(ctx, "s:{1}", "a").Val() != "3" {
			t.Error("an update without changes failed or changed a field")
		}
		if ttl := c.PTTL(ctx, "s:{1}").Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("got TTL %s, want at most a minute", ttl)
		}
		c.Set(ctx, "s:{1}:cleared", 1, time.Minute)
		if !update(SessionUpdate{Create: true, Changes: map[string]string{"a": "4"}}).Cleared {
			t.Error("a cleared session was written")
		}
	},
	"suspended_change, suspended_restore": func(t *testing.T, c redis.UniversalClient) {
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
			t.Error("restored without a token")
		}
		c.Set(ctx, keys.RestoreToken, "me", 0)
		if change(Suspend, "a") || restore("me", "b") != "" {
			t.Error("restored with a revoked token")
		}
		c.Set(ctx, keys.RestoreToken, "me", 0)
		v := restore("me", "a", "b")
		if len(v) < 16 || c.Get(ctx, keys.Version).Val() != v {
			t.Fatalf("got version %q", v)
		}
		c.Set(ctx, keys.RestoreToken, "you", 0)
		if restore("you", "c") != "" {
			t.Error("restored an existing set")
		}
		if !change(Suspend, "c") || !change(Reinstate, "a") {
			t.Error("the set was not changed")
		}
		got := c.SMembers(ctx, "set").Val()
		slices.Sort(got)
		if !slices.Equal(got, []string{"b", "c"}) || c.Get(ctx, keys.Version).Val() <= v {
			t.Errorf("got suspended tenants %v, want [b c] and a higher version", got)
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
