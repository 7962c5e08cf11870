package flags

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// Source provides the current values. Static, File and RemoteConfig create one; Current of a zero
// Source panics. Safe for concurrent use.
type Source struct {
	current      atomic.Pointer[Values]
	refreshIfDue func() // starts a refresh if one is due; never waits for the network
	lastError    string // last logged error; used by one refresh at a time
}

// Current returns the last valid values, at first the defaults. Current never returns nil, never
// fails and never waits for the network. Unless a refresh is due, the cost is a clock read and two
// atomic reads. A due refresh of File reads the file in this call, under a mutex; a due refresh of
// RemoteConfig starts a goroutine, and this call returns the old values. Callers share the values
// and must not modify them.
func (s *Source) Current() *Values {
	s.refreshIfDue()
	return s.current.Load()
}

func newSource(first *Values) *Source {
	s := &Source{refreshIfDue: func() {}}
	s.current.Store(first)
	return s
}

// set stores v; invalid fields already have the last valid values. A warning is logged when an
// error first occurs or changes, not at every refresh. The metric flags_stale matches the message.
func (s *Source) set(from string, v *Values, err error) {
	s.current.Store(v)
	message := ""
	if err != nil {
		message = err.Error()
	}
	if message != "" && message != s.lastError {
		slog.Warn("flags kept their last good values", "source", from, "err", err)
	}
	s.lastError = message
}

// Static returns a Source whose values are always v; the map of v is not copied. It never fails.
func Static(v Values) *Source { return newSource(&v) }

// throttle allows one caller per interval.
type throttle struct {
	interval time.Duration
	next     atomic.Int64 // Unix nanoseconds
}

func (t *throttle) allow() bool {
	now := time.Now().UnixNano()
	next := t.next.Load()
	return now >= next && t.next.CompareAndSwap(next, now+int64(t.interval))
}

const (
	fileInterval   = 100 * time.Millisecond
	remoteInterval = 30 * time.Second
	// of a whole refresh; shorter than the interval, so refreshes do not overlap
	remoteTimeout = 5 * time.Second
)

// File returns a Source that reads the document from a local file, at once and again when the file
// changes. At most ten times a second a call of Current checks the file and, if the time or size
// has changed, reads the file in the same call, in some microseconds; other callers do not wait. A
// missing file means the defaults, without a warning. An unreadable or invalid file keeps the last
// valid values and logs a warning, once per error text; see Parse. File itself never fails.
func File(path string) *Source {
	s := newSource(Defaults())
	t := throttle{interval: fileInterval}
	f := file{path: path, source: s}
	s.refreshIfDue = func() {
		if t.allow() {
			f.refresh()
		}
	}
	s.refreshIfDue()
	return s
}

// file is the state of a Source of File.
type file struct {
	path   string
	source *Source

	mu        sync.Mutex
	lastStamp stamp
}

// stamp tells whether a file has changed.
type stamp struct {
	modTime time.Time
	size    int64
}

func (f *file) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.lastStamp = stamp{}
		f.source.set(f.path, Defaults(), nil)
		return
	}
	if err != nil {
		f.source.set(f.path, f.source.current.Load(), err)
		return
	}
	now := stamp{info.ModTime(), info.Size()}
	if now == f.lastStamp {
		return
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		f.source.set(f.path, f.source.current.Load(), err)
		return
	}
	f.lastStamp = now // if the file changed after Stat, the stamp is too old and the next check reads again
	v, err := Parse(data, f.source.current.Load())
	f.source.set(f.path, v, err)
}

// RemoteConfig returns a Source that reads the server template of a Firebase project over the REST
// API, with an access token of the account of this process. RemoteConfig does not dial and never
// fails: a call of Current starts a refresh, at most every 30 s, and does not wait. The first call
// therefore returns the defaults. A refresh takes at most 5 s in a goroutine: one request, which is
// conditional after the first, and a call of the metadata server if no token is cached.
//
// After a failure the last valid values stay, for any time, at first the defaults, and a warning is
// logged when the error first occurs or changes; the next refresh is due after the same 30 s. A
// refresh lost with an instance does no harm: the next instance starts another.
func RemoteConfig(project string) *Source {
	return remoteSource(newRemote(project))
}

func newRemote(project string) *remote {
	return &remote{
		url: "https://firebaseremoteconfig.googleapis.com/v1/projects/" + project + "/namespaces/firebase-server/remoteConfig",
		token: func(ctx context.Context) (string, error) {
			return gcptoken.Default().AccessToken(ctx, gcptoken.ScopeRemoteConfig)
		},
	}
}

func remoteSource(r *remote) *Source {
	s := newSource(Defaults())
	t := throttle{interval: remoteInterval}
	s.refreshIfDue = func() {
		if t.allow() {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
				defer cancel()
				r.refresh(ctx, s)
			}()
		}
	}
	return s
}
