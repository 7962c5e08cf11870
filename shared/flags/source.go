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

	"melmastoon.ghasi.io/bff-consumer/shared/account"
)

// Source answers with the values of now. It is safe for concurrent use.
type Source struct {
	current atomic.Pointer[Values]
	look    func() // looks for newer values when it is time to; never waits for the network
	trouble string // what was logged last; touched by one refresh at a time
}

// Current is the last good values: never nil, never late, at first the defaults.
func (s *Source) Current() *Values {
	s.look()
	return s.current.Load()
}

func newSource(first *Values) *Source {
	s := &Source{look: func() {}}
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
	if trouble != "" && trouble != s.trouble {
		slog.Warn("flags kept their last good values", "source", from, "err", err)
	}
	s.trouble = trouble
}

// Static always answers v.
func Static(v Values) *Source { return newSource(&v) }

// timer lets one caller through per interval.
type timer struct {
	every time.Duration
	next  atomic.Int64 // Unix nanoseconds
}

func (t *timer) due() bool {
	now := time.Now().UnixNano()
	next := t.next.Load()
	return now >= next && t.next.CompareAndSwap(next, now+int64(t.every))
}

const (
	fileEvery   = 100 * time.Millisecond
	remoteEvery = 30 * time.Second
	remoteLimit = 5 * time.Second // a whole refresh; shorter than the interval, so that they never meet
)

// File reads the document from a file of the local disk, again whenever it has changed; the caller that
// notices reads it (some microseconds). A file that is not there means the defaults.
func File(path string) *Source {
	s := newSource(Defaults())
	t := timer{every: fileEvery}
	f := file{path: path, source: s}
	s.look = func() {
		if t.due() {
			f.refresh()
		}
	}
	s.look()
	return s
}

type file struct {
	path   string
	source *Source

	mu   sync.Mutex
	seen stamp
}

type stamp struct {
	changed time.Time
	size    int64
}

func (f *file) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.seen = stamp{}
		f.source.set(f.path, Defaults(), nil)
		return
	}
	if err != nil {
		f.source.set(f.path, f.source.current.Load(), err)
		return
	}
	now := stamp{info.ModTime(), info.Size()}
	if now == f.seen {
		return
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		f.source.set(f.path, f.source.current.Load(), err)
		return
	}
	f.seen = now // older than what was read, if it changed in between: read once more then
	v, err := Parse(data, f.source.current.Load())
	f.source.set(f.path, v, err)
}

// RemoteConfig reads the server template of a Firebase project over its REST API, at most every 30 s:
// a reader kicks a refresh off and does not wait for it. The token is of the account this process runs as. Losing a refresh with the instance costs nothing; the next one has its own.
func RemoteConfig(project string) *Source {
	return remoteSource(fromProject(project))
}

func fromProject(project string) *remote {
	return &remote{
		url:   "https://firebaseremoteconfig.googleapis.com/v1/projects/" + project + "/namespaces/firebase-server/remoteConfig",
		token: func(ctx context.Context) (string, error) { return account.Own().Access(ctx, account.RemoteConfig) },
	}
}

func remoteSource(r *remote) *Source {
	s := newSource(Defaults())
	t := timer{every: remoteEvery}
	s.look = func() {
		if t.due() {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), remoteLimit)
				defer cancel()
				r.refresh(ctx, s)
			}()
		}
	}
	return s
}
