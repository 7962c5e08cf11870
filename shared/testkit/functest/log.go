package functest

import (
	"bytes"
	"sync"
)

// Log keeps what functions log. It is safe for concurrent use.
type Log struct {
	mu         sync.Mutex
	buf        bytes.Buffer
	discarding bool
}

// Write keeps one record.
func (l *Log) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.discarding {
		return len(record), nil
	}
	return l.buf.Write(record)
}

// String is all that was logged, one record a line.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Discard throws away what is logged from now on: a benchmark would fill the memory.
func (l *Log) Discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.discarding = true
}
