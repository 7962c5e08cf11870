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

// SuspendedKeys are the set of suspended tenants, the version of the set, and the token of the
// process that restores a missing set; in one slot.
type SuspendedKeys struct{ Set, Version, RestoreToken string }

func (k SuspendedKeys) all() []string { return []string{k.Set, k.Version, k.RestoreToken} }

// Suspend adds a tenant to the set of suspended tenants and increments the version; false: the set
// is missing and unchanged, and the next reader restores the set. 1 round trip, 2 if the server
// does not know the script; so for all functions of this file. Without Redis the error satisfies
// redisclient.IsUnavailable.
func Suspend(ctx context.Context, c redis.Scripter, keys SuspendedKeys, tenant string) (bool, error) {
	return changeSuspended(ctx, c, keys, "SADD", tenant)
}

// Reinstate removes a tenant from the set of suspended tenants and increments the version; false as
// for Suspend.
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

// RestoreSuspended restores the missing set of suspended tenants and returns the new version. token
// must be the value of RestoreToken. The version is "", and the set unchanged, if another process
// has written a token since, or if the set was changed or restored since.
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
