// Package traffic owns the counts of the last minutes: it reads the request log as it grows, for the page that shows what happens
// inside. It takes no part in any request, and reads only when it is asked.
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
	// SlotSeconds is how much time one slot counts.
	SlotSeconds = 5
	slotCount   = 60 // five minutes

	maxReadBytes = 8 << 20 // bytes; a log that grew by more since the last question is read from there on
)

// Slot counts the requests that ended within SlotSeconds.
type Slot struct {
	At       time.Time `json:"at"`       // its beginning
	Requests int       `json:"requests"` // all of the public API
	Refused  int       `json:"refused"`  // answered 4xx
	Failed   int       `json:"failed"`   // answered 5xx
	Hit      int       `json:"hit"`
	Stale    int       `json:"stale"`
	Miss     int       `json:"miss"`
}

// Report is what happened in the last five minutes, oldest first, an entry for each slot.
type Report struct {
	Slots    []Slot            `json:"slots"`
	Breakers map[string]string `json:"breakers"` // by upstream, of those that ever changed: closed, half-open, open
}

// Follower is safe for concurrent use.
type Follower struct {
	path   string // of the log
	prefix string // of the paths that count

	mu       sync.Mutex
	offset   int64
	ring     [slotCount]Slot
	breakers map[string]map[string]int // upstream → state → how many are in it, in the order of the log
}

// Follow counts the requests of a log to paths that begin with a prefix.
func Follow(path, prefix string) *Follower {
	return &Follower{path: path, prefix: prefix, breakers: map[string]map[string]int{}}
}

// Read takes in what the log has got since the last time, and reports.
func (t *Follower) Read(now time.Time) (Report, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.readNew(); err != nil {
		return Report{}, fmt.Errorf("traffic: %w", err)
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

// worstState is the state that says most: each function has a breaker of its own for the same upstream.
func worstState(count map[string]int) string {
	for _, state := range []string{"open", "half-open"} {
		if count[state] > 0 {
			return state
		}
	}
	return "closed"
}

// readNew reads whole lines from the offset on.
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
	if info.Size() < t.offset { // somebody emptied it
		t.offset = 0
	}
	t.offset = max(t.offset, info.Size()-maxReadBytes)
	text, err := io.ReadAll(io.NewSectionReader(log, t.offset, info.Size()-t.offset))
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1 // the rest is being written
	t.offset += int64(whole)
	for line := range bytes.Lines(text[:whole]) {
		t.apply(line)
	}
	return nil
}

// record is what counts of a line.
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

func (t *Follower) apply(line []byte) {
	var r record
	if json.Unmarshal(line, &r) != nil {
		return // half a line, after a skip
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
		return // older than what is kept
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
