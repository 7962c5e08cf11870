package lua

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	acquire = load("acquire.lua")
	extend  = load("extend.lua")
	release = load("release.lua")
	store   = load("store.lua")
)

// AcquireResult is the answer to Acquire.
type AcquireResult struct {
	Acquired   bool   // the lock is the caller's
	ServerTime int64  // server's time, µs since 1970
	Entry      string // what the entry's key holds; empty: nothing
}

// Acquire takes a lock for the lease unless somebody has it, and reads the entry it guards. Both keys share a slot.
func Acquire(ctx context.Context, c redis.Scripter, lock, entry, token string, lease time.Duration) (AcquireResult, error) {
	reply, err := acquire().Run(ctx, c, []string{lock, entry}, token, lease.Milliseconds()).Slice()
	if err != nil {
		return AcquireResult{}, fmt.Errorf("lua: acquire %s: %w", lock, err)
	}
	a := AcquireResult{Acquired: reply[0] == int64(1), ServerTime: reply[1].(int64)}
	if len(reply) == 3 {
		a.Entry, _ = reply[2].(string)
	}
	return a, nil
}

// Extend renews a lock's lease; false: it was lost.
func Extend(ctx context.Context, c redis.Scripter, lock, token string, lease time.Duration) (bool, error) {
	n, err := extend().Run(ctx, c, []string{lock}, token, lease.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("lua: extend %s: %w", lock, err)
	}
	return n == 1, nil
}

// Release gives a lock up; false: it was lost already.
func Release(ctx context.Context, c redis.Scripter, lock, token string) (bool, error) {
	n, err := release().Run(ctx, c, []string{lock}, token).Int()
	if err != nil {
		return false, fmt.Errorf("lua: release %s: %w", lock, err)
	}
	return n == 1, nil
}

// Store writes the entry for its life and gives the lock up; false: the lock was lost, and nothing is written.
func Store(ctx context.Context, c redis.Scripter, entry, lock, token string, value []byte, life time.Duration) (bool, error) {
	n, err := store().Run(ctx, c, []string{entry, lock}, token, value, life.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("lua: store %s: %w", entry, err)
	}
	return n == 1, nil
}
