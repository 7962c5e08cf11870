package lua

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	suspendedChange  = load("suspended_change.lua")
	suspendedRestore = load("suspended_restore.lua")
)

// SuspendedKeys are the suspended set, its version, and who is restoring it; in one slot.
type SuspendedKeys struct{ Set, Version, RestoreToken string }

func (k SuspendedKeys) all() []string { return []string{k.Set, k.Version, k.RestoreToken} }

// Suspend adds a tenant to the suspended set and gives it a new version; false: the set is lost, and to be restored.
func Suspend(ctx context.Context, c redis.Scripter, keys SuspendedKeys, tenant string) (bool, error) {
	return changeSuspended(ctx, c, keys, "SADD", tenant)
}

// Reinstate takes a tenant off the suspended set and gives it a new version; false: the set is lost, and to be restored.
func Reinstate(ctx context.Context, c redis.Scripter, keys SuspendedKeys, tenant string) (bool, error) {
	return changeSuspended(ctx, c, keys, "SREM", tenant)
}

func changeSuspended(ctx context.Context, c redis.Scripter, keys SuspendedKeys, command, tenant string) (bool, error) {
	n, err := suspendedChange().Run(ctx, c, keys.all(), command, tenant).Int()
	if err != nil {
		return false, fmt.Errorf("lua: change suspended set: %w", err)
	}
	return n == 1, nil
}

// RestoreSuspended puts a lost set back and returns its version. It is refused, with an empty version, to anyone but the
// last to write a token under Restorer, and to that one when the set was changed or restored since.
func RestoreSuspended(ctx context.Context, c redis.Scripter, keys SuspendedKeys, token string, tenants []string) (string, error) {
	args := make([]any, 0, 1+len(tenants))
	args = append(args, token)
	for _, tenant := range tenants {
		args = append(args, tenant)
	}
	version, err := suspendedRestore().Run(ctx, c, keys.all(), args...).Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("lua: restore suspended set: %w", err)
	}
	return version, nil
}
