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

// AcquireResult is the reply to Acquire.
type AcquireResult struct {
	Acquired   bool   // the caller holds the lock
	ServerTime int64  // server time, µs since 1970
	Entry      string // value of the entry key; empty: absent or of a wrong type
}

// Acquire takes a lock for the duration of lease, unless another token holds the lock, and reads
// the protected entry in either case. Both keys share a slot. Acquire tries once and never waits
// for the holder; then Acquired is false, without an error. Repeating Acquire with the same token
// extends the lock. 1 round trip, 2 if the server does not know the script; so for all functions of
// this file.
//
// A lock of another type counts as free, and a lock without a TTL gets lease. After an error the
// result is zero, but the caller may hold the lock: repeat with the same token, or let the lease
// expire. Without Redis the error satisfies redisclient.IsUnavailable, except a cancelled ctx and
// redis.ErrPoolTimeout.
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

// Extend renews the lease of a lock; (false, nil): the lock was lost, and the script changed
// nothing. Round trips and errors are those of Acquire; a key of another type is an error.
func Extend(ctx context.Context, c redis.Scripter, lock, token string, lease time.Duration) (bool, error) {
	n, err := extend().Run(ctx, c, []string{lock}, token, lease.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("lua: extend %s: %w", lock, err)
	}
	return n == 1, nil
}

// Release deletes a lock; (false, nil): the lock was lost before, and the script changed nothing,
// so a repeated call does no harm. Round trips and errors are those of Acquire; a key of another
// type is an error. After an error the lock may stay until the lease expires.
func Release(ctx context.Context, c redis.Scripter, lock, token string) (bool, error) {
	n, err := release().Run(ctx, c, []string{lock}, token).Int()
	if err != nil {
		return false, fmt.Errorf("lua: release %s: %w", lock, err)
	}
	return n == 1, nil
}

// Store writes the entry with a TTL and deletes the lock, atomically; (false, nil): the lock was
// lost, and the entry is unchanged. A ttl below 1 ms is an error. Round trips and errors are those
// of Acquire. After a timeout the entry may be stored; a repeated call then returns false.
func Store(ctx context.Context, c redis.Scripter, entry, lock, token string, value []byte, ttl time.Duration) (bool, error) {
	n, err := store().Run(ctx, c, []string{entry, lock}, token, value, ttl.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("lua: store %s: %w", entry, err)
	}
	return n == 1, nil
}
