package functest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// Log collects the log records of functions. Safe for concurrent use.
type Log struct {
	mu         sync.Mutex
	buf        bytes.Buffer
	discarding bool
}

// Write appends a record.
func (l *Log) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.discarding {
		return len(record), nil
	}
	return l.buf.Write(record)
}

// String returns all records, a record a line.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Discard drops all later records: those of a benchmark would fill the memory.
func (l *Log) Discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.discarding = true
}

// Records returns the log records in the order they were written.
func (l *Log) Records(t testing.TB) (records []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("log record: %v in %s", err, line)
		}
		records = append(records, record)
	}
	return records
}

// Last returns the newest log record.
func (l *Log) Last(t testing.TB) map[string]any {
	t.Helper()
	records := l.Records(t)
	if len(records) == 0 {
		t.Fatal("the log has no record")
	}
	return records[len(records)-1]
}
