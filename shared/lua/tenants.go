package lua

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	suspendedChange  = load("suspended_change.lua")
	suspendedRestore = load("suspended_restore.lua")
)

// SuspendedChange adds a tenant to the suspended set (command "SADD") or takes it off ("SREM") and gives the set a new
// version. A set that was lost stays lost. Both keys share a slot.
func SuspendedChange(ctx context.Context, c redis.Scripter, set, version, command, tenant string) error {
	if err := suspendedChange.Run(ctx, c, []string{set, version}, command, tenant).Err(); err != nil {
		return fmt.Errorf("lua: change suspended set: %w", err)
	}
	return nil
}

// SuspendedRestore puts a lost set back, unless somebody has, and returns its version.
func SuspendedRestore(ctx context.Context, c redis.Scripter, set, version string, tenants []string) (string, error) {
	args := make([]any, len(tenants))
	for i, tenant := range tenants {
		args[i] = tenant
	}
	v, err := suspendedRestore.Run(ctx, c, []string{set, version}, args...).Text()
	if err != nil {
		return "", fmt.Errorf("lua: restore suspended set: %w", err)
	}
	return v, nil
}
