// Package requestlog counts the requests of the last five minutes from the request log, for the
// page that shows the inside of the local system. It is not part of any request and reads the log
// only when Read is called.
package requestlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// SlotSeconds is the length of a slot.
	SlotSeconds = 5
	slotCount   = 60 // five minutes

	maxReadBytes = 8 << 20 // of one Read; if the log grew by more, Read skips the older lines
)

// Slot counts the requests that ended within SlotSeconds.
type Slot struct {
	At       time.Time `json:"at"`       // start of the slot
	Requests int       `json:"requests"` // to the public API
	Refused  int       `json:"refused"`  // with a 4xx response
	Failed   int       `json:"failed"`   // with a 5xx response
	Hit      int       `json:"hit"`
	Stale    int       `json:"stale"`
	Miss     int       `json:"miss"`
}

// Report holds 60 slots, oldest first, and the state of the circuit breakers.
type Report struct {
	Slots []Slot `json:"slots"`
	// closed, half-open or open, by upstream; only breakers that ever changed state
	Breakers map[string]string `json:"breakers"`
}

// Follower reads a request log incrementally. It is safe for concurrent use.
type Follower struct {
	path   string // of the log
	prefix string // of the counted request paths

	mu     sync.Mutex
	offset int64
	ring   [slotCount]Slot
	// upstream → state → number of breakers, relative to the start of the log
	breakers map[string]map[string]int
}

// Follow returns a Follower that counts the requests to paths with a prefix. It does not open the
// log, which need not exist yet.
func Follow(path, prefix string) *Follower {
	return &Follower{path: path, prefix: prefix, breakers: map[string]map[string]int{}}
}

// Read reads the lines added to the log since the previous call, at most the last 8 MiB, and
// returns the report of the five minutes before now. A missing log counts as empty; other file
// errors are returned.
func (t *Follower) Read(now time.Time) (Report, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.readNew(); err != nil {
		return Report{}, fmt.Errorf("requestlog: %w", err)
	}
	report := Report{Breakers: map[string]string{}}
	first := now.Unix()/SlotSeconds - slotCount + 1
	for n := first; n < first+slotCount; n++ {
		at := time.Unix(n*SlotSeconds, 0).UTC()
		slot := t.ring[n%slotCount]
		if !slot.At.Equal(at) {
			slot = Slot{At: at}
		}
		report.Slots = append(report.Slots, slot)
	}
	for upstream, count := range t.breakers {
		report.Breakers[upstream] = worstState(count)
	}
	return report, nil
}

// worstState returns the worst state of an upstream's breakers; each function has its own breaker.
func worstState(count map[string]int) string {
	for _, state := range []string{"open", "half-open"} {
		if count[state] > 0 {
			return state
		}
	}
	return "closed"
}

// readNew applies the complete lines after offset.
func (t *Follower) readNew() error {
	log, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	if info.Size() < t.offset { // the log was truncated
		t.offset = 0
	}
	t.offset = max(t.offset, info.Size()-maxReadBytes)
	text, err := io.ReadAll(io.NewSectionReader(log, t.offset, info.Size()-t.offset))
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1 // the last line may be incomplete
	t.offset += int64(whole)
	for line := range bytes.Lines(text[:whole]) {
		t.apply(line)
	}
	return nil
}

// record holds the members of a log line that matter here: of a request or of a breaker's change.
type record struct {
	Time    time.Time `json:"time"`
	Cache   string    `json:"cache"`
	Request struct {
		URL    string `json:"requestUrl"`
		Status int    `json:"status"`
	} `json:"httpRequest"`
	Upstream string `json:"upstream"`
	From     string `json:"from"`
	To       string `json:"to"`
}

// apply counts one line.
func (t *Follower) apply(line []byte) {
	var r record
	if json.Unmarshal(line, &r) != nil {
		return // the rest of a line, after readNew skipped its beginning
	}
	if r.Upstream != "" && r.To != "" {
		count := t.breakers[r.Upstream]
		if count == nil {
			count = map[string]int{}
			t.breakers[r.Upstream] = count
		}
		count[r.From]--
		count[r.To]++
		return
	}
	if r.Request.Status == 0 || !strings.HasPrefix(r.Request.URL, t.prefix) {
		return
	}
	n := r.Time.Unix() / SlotSeconds
	slot, at := &t.ring[n%slotCount], time.Unix(n*SlotSeconds, 0)
	if slot.At.Before(at) {
		*slot = Slot{At: at.UTC()}
	}
	if !slot.At.Equal(at) {
		return // older than the ring
	}
	slot.Requests++
	switch {
	case r.Request.Status >= 500:
		slot.Failed++
	case r.Request.Status >= 400:
		slot.Refused++
	}
	switch r.Cache {
	case "HIT":
		slot.Hit++
	case "STALE":
		slot.Stale++
	case "MISS":
		slot.Miss++
	}
}
