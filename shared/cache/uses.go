package cache

import (
	"context"
	"sync"
)

// An answer made of other entries is only as new as they are. When one of them was made, or its making had begun,
// before an invalidation that the answer itself began after, the answer must not be stored either.

type usesKey struct{}

// uses are the parts of one answer in the making: how old each tag's oldest part is.
type uses struct {
	mu    sync.Mutex
	since map[string]int64 // by tag, server's time µs; 0: unknown
}

// Used says that e, which carries the tags, went into the answer that a Fill is making in ctx. Elsewhere it does
// nothing. It knows of e's own making, not of what e in turn was made of.
func Used(ctx context.Context, e *Entry, tags ...string) {
	u, filling := ctx.Value(usesKey{}).(*uses)
	if !filling {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since = map[string]int64{}
	}
	for _, tag := range tags {
		if since, known := u.since[tag]; !known || e.since < since {
			u.since[tag] = e.since
		}
	}
}

// oldest is since when what carries the tag may be out of date: at the latest since the answer's own making began.
func (u *uses) oldest(tag string, began int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if since, used := u.since[tag]; used {
		return min(since, began)
	}
	return began
}
