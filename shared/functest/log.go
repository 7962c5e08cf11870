package functest

import (
	"bytes"
	"sync"
)

// Log keeps what functions log. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	kept    bytes.Buffer
	dropped bool
}

// Write keeps one record.
func (l *Log) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped {
		return len(record), nil
	}
	return l.kept.Write(record)
}

// String is all that was logged, one record a line.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// Drop throws away what is logged from now on: a benchmark would fill the memory.
func (l *Log) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = true
}
