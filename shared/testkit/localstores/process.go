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

// watchdog is the parent of the server. It waits for the end of a pipe whose other end only its owner holds, so a
// return, a panic and a SIGKILL of the owner are the same event: the pipe closes, the server is told to stop, and a
// temporary directory is removed. It is a shell, because that is what every machine has; both it and the server
// hold the lock on descriptor 4 for as long as either lives.
//
// What a shell starts with & ignores INT and QUIT until it asks for them, and Postgres needs a moment to ask. So the
// signal is repeated until the server is gone, and is KILL in the end.
//
//	$1 signal that stops the server   $2 how often to send it before KILL, every tenth of a second
//	$3 directory to remove afterwards, or nothing   $4… the server
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

// stopTimeout is how long a server may take to stop before it is killed. The watchdog, for whom nobody may wait any
// more, gives it a second longer.
var stopTimeout = 10 * time.Second // changed by tests

// signals are those that a program may be stopped with.
var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT}

// program is a server to run in a directory of its own.
type program struct {
	argv       []string
	dir        string              // holds the lock files and the log
	removeDir  bool                // remove dir when the server has stopped
	pidFile    string              // where the server writes its process id
	stopSignal string              // stops it: one of signals
	credential *syscall.Credential // nil: our own
	ready      func() bool         // asked every few ms after the start
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

// startProcess runs p and returns when it is ready. Whatever the last run left behind in p.dir is stopped first.
func startProcess(ctx context.Context, p program) (_ *process, err error) {
	c := &process{done: make(chan struct{})}
	defer func() {
		if err != nil {
			c.close()
			if p.removeDir { // the watchdog does it, but there may be none yet
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
	leashEnd, leash, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer leashEnd.Close()
	c.stopPipe = leash

	if p.removeDir {
		c.tempDir = p.dir
	}
	times := strconv.Itoa(int((stopTimeout + time.Second) / (100 * time.Millisecond)))
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", watchdog, "watchdog", p.stopSignal, times, c.tempDir}, p.argv...)...)
	c.cmd.Dir = "/"
	c.cmd.Env = append(os.Environ(), "LC_ALL=C") // the log is read for its words
	// Files, not our own output: `go test` waits until everyone who holds its output has ended.
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.ExtraFiles = []*os.File{leashEnd, lock} // descriptors 3 and 4
	// A session of its own, so that a Ctrl-C meant for us does not end the watchdog before its work.
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
			return nil, fmt.Errorf("it ended at once:\n%s", c.logTail())
		case <-ctx.Done():
			return nil, fmt.Errorf("it did not get ready: %w\n%s", ctx.Err(), c.logTail())
		}
	}
	return c, nil
}

// stop ends the server and returns when it, its watchdog and a temporary directory are gone. It may be called twice.
func (c *process) stop() error {
	err := c.close()
	if c.tempDir != "" {
		err = errors.Join(err, os.RemoveAll(c.tempDir)) // its parent may have been closed to the watchdog's user
	}
	return err
}

// close gives back what start took, in any half-finished state. It waits for the server and its watchdog, and kills
// both when they take too long.
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
			err = errors.New("stores: the server did not stop and was killed")
		}
	}
	for _, f := range []*os.File{c.ownerLock, c.log} {
		if f != nil {
			f.Close()
		}
	}
	return err
}

// logTail is the end of the server's log, also when the watchdog has removed the file already.
func (c *process) logTail() string {
	text, _ := io.ReadAll(io.NewSectionReader(c.log, 0, 1<<20))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// reclaimLock takes the server's lock. When it is held although the directory has no owner, a server has outlived its
// watchdog or is about to stop: it is told to, and waited for, and killed when that takes too long. The lock, and not
// the process id alone, says that it is ours; a process id may belong to somebody else by now.
func reclaimLock(ctx context.Context, p program) (*os.File, error) {
	path := filepath.Join(p.dir, "server.lock")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
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
			if time.Since(begun) > stopTimeout {
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

// openLock opens path with an exclusive lock that ends with the last copy of the descriptor.
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

// readPID is the number on the first line of a pid file, 0 when there is none.
func readPID(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}
