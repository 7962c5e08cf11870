package servertest

import (
	"errors"
	"net"
	"testing"
	"time"
)

// FreePort returns a port of 127.0.0.1 that nothing listens on at the moment. Another process may
// take it before the caller does.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// WaitListening waits until addr accepts a connection. It fails when exited is closed first, and
// after one minute.
func WaitListening(addr string, exited <-chan struct{}) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(time.Minute)
	for {
		if conn, err := net.Dial("tcp", addr); err == nil {
			return conn.Close()
		}
		select {
		case <-again.C:
		case <-exited:
			return errors.New("the function exited before it listened")
		case <-late:
			return errors.New("the function does not listen after one minute")
		}
	}
}
