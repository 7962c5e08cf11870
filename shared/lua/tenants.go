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

// Suspend adds a tenant to the set of suspended tenants and increments the version; (false, nil):
// the version of the set is missing, the script changes no tenant but revokes RestoreToken, and the
// next reader restores the set. A repeated call increments the version again. 1 round trip, 2 if
// the server does not know the script; so for all functions of this file. Without Redis the error
// satisfies redisclient.IsUnavailable, except a cancelled ctx and redis.ErrPoolTimeout; after a
// timeout the change may have been made.
func Suspend(ctx context.Context, c redis.Scripter, keys SuspendedKeys, tenant string) (bool, error) {
	return changeSuspended(ctx, c, keys, "SADD", tenant)
}

// Reinstate removes a tenant from the set of suspended tenants and increments the version, also if
// the tenant was not in the set; (false, nil) and errors as for Suspend.
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

// RestoreSuspended replaces the missing set of suspended tenants by tenants, deletes RestoreToken
// and returns the new version, the server time in µs. token must be the value of RestoreToken. The
// result is ("", nil), and the set unchanged, if another process has written a token since, if the
// token expired, or if the set was changed or restored since. An error gives ("", err); after a
// timeout the set may be restored, and a repeated call returns "". Round trips as for Suspend.
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
