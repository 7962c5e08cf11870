package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestWhatRedisRefusesIsNotTriedAgain(t *testing.T) {
	for _, refused := range []string{"acquire", "store"} {
		t.Run(refused, func(t *testing.T) {
			server := redistest.Server(t)
			p, well := newProcess(t, server.Addr, newClock()), server.Client()
			tries := 0
			p.tap.set(func(step string) error {
				if step != refused {
					return nil
				}
				tries++
				return well.ConfigSet(t.Context(), "maxmemory", "1").Err() // from now on there is no memory for more
			}, nil)
			want(t, p.Cache, Recipe{Fill: answer(t, "answer")}, "answer", Miss)
			if tries > 2 { // by the script's digest, and by its source, which the server did not know
				t.Errorf("%d tries", tries)
			}
		})
	}
}

// reply is an error that the server answered with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestOnlyWhatMayPassIsTriedAgain(t *testing.T) {
	for err, tries := range map[error]int{
		reply("OOM command not allowed"): 1, reply("READONLY You can't write"): 1, reply("WRONGTYPE Operation"): 1,
		reply("LOADING Redis is loading"): 2, reply("TRYAGAIN Multiple keys"): 2, reply("CLUSTERDOWN Hash slot"): 2,
		errCut: 2,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			n := 0
			got := insist(t.Context(), func(context.Context) error {
				if n++; n == 1 {
					return fmt.Errorf("lua: acquire: %w", err)
				}
				return nil
			})
			if n != tries || (tries == 1) != errors.Is(got, err) {
				t.Errorf("%d tries, %v", n, got)
			}
		})
	}
}

func TestKeysOfAWrongTypeHeal(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	p.rdb.RPush(t.Context(), testKey, "written by hand")
	p.rdb.RPush(t.Context(), testKeys.Lock(testKey), "this too")
	want(t, p.Cache, Recipe{Fill: answer(t, "answer")}, "answer", Miss)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "answer", Hit)
}

func TestALockWithoutEndBlocksNobodyForLong(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	p.rdb.Set(t.Context(), testKeys.Lock(testKey), "written by hand", 0)
	want(t, p.Cache, Recipe{Fill: answer(t, "answer")}, "answer", Miss)
}
