package localstores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watchdog is the parent process of the server. It waits for the end of a pipe whose other end only
// the owner holds. A return, a panic and a SIGKILL of the owner are therefore the same event: the
// pipe closes, the watchdog stops the server and removes a temporary directory. The watchdog is a
// shell script, because every machine has a shell. Watchdog and server hold the lock on descriptor
// 4 while either lives.
//
// A program started with & ignores INT and QUIT until it sets handlers, and Postgres needs a moment
// to set them. So the watchdog repeats the signal until the server is gone, and sends KILL in the
// end.
//
//	$1 signal for the server   $2 number of signals before KILL, ten a second
//	$3 directory to remove afterwards, or ""   $4… command of the server
const watchdog = `
sig=$1 times=$2 remove=$3; shift 3
"$@" </dev/null 3<&- & server=$!
{
	read -r _ <&3
	while kill -s "$sig" "$server" 2>/dev/null; do
		if [ "$sig" = KILL ]; then break; fi
		times=$((times - 1))
		if [ "$times" -le 0 ]; then sig=KILL; fi
		sleep 0.1
	done
} 4<&- & watcher=$!
wait "$server"; code=$?
kill "$watcher"
if [ -n "$remove" ]; then rm -rf "$remove"; fi
exit "$code"
`

// stopTimeout is the time for a server to stop before a kill. The watchdog allows a second more,
// for the case that the owner is gone.
var stopTimeout = 10 * time.Second // changed by tests

// signals maps the names of a program's possible stop signals.
var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT}

// program describes a server to run in a private directory.
type program struct {
	argv       []string
	dir        string              // holds the lock files and the log
	removeDir  bool                // remove dir when the server has stopped
	pidFile    string              // the server writes its process id to it
	stopSignal string              // a key of signals
	credential *syscall.Credential // nil: the current user
	ready      func() bool         // called every 5 ms after the start
}

// process is a running server with its watchdog.
type process struct {
	cmd       *exec.Cmd
	ownerLock *os.File // lock of the process that uses the directory
	stopPipe  *os.File // closing it stops the server
	log       *os.File
	done      chan struct{} // closed when the server and the watchdog have ended
	tempDir   string        // directory to remove, or ""
}

// startProcess stops a server left in p.dir by the last run, runs p and returns when p is ready.
func startProcess(ctx context.Context, p program) (_ *process, err error) {
	c := &process{done: make(chan struct{})}
	defer func() {
		if err != nil {
			c.close()
			if p.removeDir { // the watchdog may not have started
				os.RemoveAll(p.dir)
			}
		}
	}()
	if c.ownerLock, err = openLock(filepath.Join(p.dir, "owner.lock")); err != nil {
		return nil, fmt.Errorf("%s is in use by another process: %w", p.dir, err)
	}
	lock, err := reclaimLock(ctx, p)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	c.log, err = os.OpenFile(filepath.Join(p.dir, "server.log"), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	stopRead, stopWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stopRead.Close()
	c.stopPipe = stopWrite

	if p.removeDir {
		c.tempDir = p.dir
	}
	times := strconv.Itoa(int((stopTimeout + time.Second) / (100 * time.Millisecond)))
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", watchdog, "watchdog", p.stopSignal, times, c.tempDir}, p.argv...)...)
	c.cmd.Dir = "/"
	c.cmd.Env = append(os.Environ(), "LC_ALL=C") // callers search the log for English words
	// A file, not our own output: `go test` waits until all processes that hold its output have
	// ended.
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.ExtraFiles = []*os.File{stopRead, lock} // descriptors 3 and 4
	// A new session: a Ctrl-C for this process must not end the watchdog before it has stopped the
	// server.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.credential}
	if err := c.cmd.Start(); err != nil {
		c.cmd = nil
		return nil, err
	}
	go func() {
		c.cmd.Wait()
		close(c.done)
	}()

	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.ready() {
		select {
		case <-tick.C:
		case <-c.done:
			return nil, fmt.Errorf("the server ended at once:\n%s", c.logTail())
		case <-ctx.Done():
			return nil, fmt.Errorf("the server did not get ready: %w\n%s", ctx.Err(), c.logTail())
		}
	}
	return c, nil
}

// stop ends the server and returns when the server, the watchdog and a temporary directory are
// gone. A second call does nothing.
func (c *process) stop() error {
	err := c.close()
	if c.tempDir != "" {
		// the watchdog's user may not reach the parent directory
		err = errors.Join(err, os.RemoveAll(c.tempDir))
	}
	return err
}

// close releases the resources of a process, also of a partly started one. It waits up to
// stopTimeout for the server and the watchdog, and then kills both.
func (c *process) close() (err error) {
	if c.stopPipe != nil {
		c.stopPipe.Close()
	}
	if c.cmd != nil {
		select {
		case <-c.done:
		case <-time.After(stopTimeout):
			syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
			<-c.done
			err = errors.New("localstores: the server did not stop and was killed")
		}
	}
	for _, f := range []*os.File{c.ownerLock, c.log} {
		if f != nil {
			f.Close()
		}
	}
	return err
}

// logTail returns the last ten lines of the server's log, also after the watchdog has removed the
// file.
func (c *process) logTail() string {
	text, _ := io.ReadAll(io.NewSectionReader(c.log, 0, 1<<20))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// reclaimLock takes the server's lock. If the lock is held although the directory has no owner, a
// server has outlived its watchdog or is about to stop. reclaimLock sends the stop signal, waits up
// to stopTimeout and then kills the server. A held lock proves that the process id in the pid file
// is the server's: without the lock another process could have the id by now.
func reclaimLock(ctx context.Context, p program) (*os.File, error) {
	path := filepath.Join(p.dir, "server.lock")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; {
		lock, err := openLock(path)
		if err == nil {
			if err := os.Remove(p.pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
				lock.Close()
				return nil, err
			}
			return lock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
		if pid := readPID(p.pidFile); pid > 1 {
			signal := signals[p.stopSignal]
			if time.Since(start) > stopTimeout {
				signal = syscall.SIGKILL
			}
			syscall.Kill(pid, signal)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the server of the last run does not stop: %w", ctx.Err())
		}
	}
}

// openLock opens path with an exclusive lock, held until the last copy of the descriptor is closed.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readPID returns the number on the first line of a pid file, or 0.
func readPID(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}
