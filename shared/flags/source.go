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

// Source answers with the values of now. It is safe for concurrent use.
type Source struct {
	current      atomic.Pointer[Values]
	refreshIfDue func() // looks for newer values when it is time to; never waits for the network
	lastError    string // what was logged last; touched by one refresh at a time
}

// Current is the last good values: never nil, never late, at first the defaults.
func (s *Source) Current() *Values {
	s.refreshIfDue()
	return s.current.Load()
}

func newSource(first *Values) *Source {
	s := &Source{refreshIfDue: func() {}}
	s.current.Store(first)
	return s
}

// set takes over values, in which what was bad is the last good already. Trouble is logged when it
// begins or changes, not at every look.
func (s *Source) set(from string, v *Values, err error) {
	s.current.Store(v)
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != s.lastError {
		slog.Warn("flags kept their last good values", "source", from, "err", err)
	}
	s.lastError = trouble
}

// Static always answers v.
func Static(v Values) *Source { return newSource(&v) }

// throttle lets one caller through per interval.
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
	remoteTimeout  = 5 * time.Second // a whole refresh; shorter than the interval, so that they never meet
)

// File reads the document from a file of the local disk, again whenever it has changed; the caller that
// notices reads it (some microseconds). A file that is not there means the defaults.
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

type file struct {
	path   string
	source *Source

	mu        sync.Mutex
	lastStamp stamp
}

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
	f.lastStamp = now // older than what was read, if it changed in between: read once more then
	v, err := Parse(data, f.source.current.Load())
	f.source.set(f.path, v, err)
}

// RemoteConfig reads the server template of a Firebase project over its REST API, at most every 30 s:
// a reader kicks a refresh off and does not wait for it. The token is of the account this process runs as. Losing a refresh with the instance costs nothing; the next one has its own.
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
