package cache

import (
	"context"
	"sync"
)

// An answer made of other entries is only as new as they are. When one of them was made, or its making had begun,
// before an invalidation that the answer itself began after, the answer must not be stored either.

type dependenciesKey struct{}

// dependencies are the parts of one answer in the making: how old each tag's oldest part is.
type dependencies struct {
	mu        sync.Mutex
	startedAt map[string]int64 // by tag, server's time µs; 0: unknown
}

// DependsOn says that e, which carries the tags, went into the answer that a Fill is making in ctx. Elsewhere it does
// nothing. It knows of e's own making, not of what e in turn was made of.
func DependsOn(ctx context.Context, e *Entry, tags ...string) {
	u, filling := ctx.Value(dependenciesKey{}).(*dependencies)
	if !filling {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.startedAt == nil {
		u.startedAt = map[string]int64{}
	}
	for _, tag := range tags {
		if since, known := u.startedAt[tag]; !known || e.startedAt < since {
			u.startedAt[tag] = e.startedAt
		}
	}
}

// oldest is since when what carries the tag may be out of date: at the latest since the answer's own making began.
func (u *dependencies) oldest(tag string, began int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if since, used := u.startedAt[tag]; used {
		return min(since, began)
	}
	return began
}
