package localstores

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHelperProcess_Server is not a test of its own: it is a server that writes its process id to
// STORES_PID and ends with the signal STORES_ENDURES and one more.
func TestHelperProcess_Server(t *testing.T) {
	if os.Getenv("STORES_PID") == "" {
		t.Skip("started by other tests")
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt)
	if err := os.WriteFile(os.Getenv("STORES_PID"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	endures, _ := strconv.Atoi(os.Getenv("STORES_ENDURES"))
	for range endures + 1 {
		<-told
	}
}

// helperServer is a program that runs TestServer.
func helperServer(t *testing.T, endures int) program {
	t.Helper()
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	t.Setenv("STORES_PID", pidFile)
	t.Setenv("STORES_ENDURES", strconv.Itoa(endures))
	return program{
		argv: []string{os.Args[0], "-test.run=^TestHelperProcess_Server$"}, dir: dir, pidFile: pidFile, stopSignal: "INT",
		ready: func() bool { return readPID(pidFile) > 0 },
	}
}

// neverStops is more signals than any test sends.
const neverStops = 1 << 30

func shortenStopTimeout(t *testing.T) {
	t.Helper()
	before := stopTimeout
	stopTimeout = 200 * time.Millisecond
	t.Cleanup(func() { stopTimeout = before })
}

func TestProcessStop_RepeatsMissedSignal(t *testing.T) {
	c, err := startProcess(t.Context(), helperServer(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

func TestStartProcess_CancelledStartStopsServer(t *testing.T) {
	p := helperServer(t, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	up := p.ready
	p.ready = func() bool {
		if up() {
			interrupt()
		}
		return false
	}
	if _, err := startProcess(ctx, p); err == nil || !strings.Contains(err.Error(), "did not get ready") {
		t.Errorf("start: %v", err)
	}
	awaitStopped(t, p.dir)
}

func TestProcessStop_KillsServerAfterTimeout(t *testing.T) {
	shortenStopTimeout(t)
	c, err := startProcess(t.Context(), helperServer(t, neverStops))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop: %v", err)
	}
}

func TestWatchdog_KillsServerThatOutlivesOwner(t *testing.T) {
	shortenStopTimeout(t)
	c, err := startProcess(t.Context(), helperServer(t, neverStops))
	if err != nil {
		t.Fatal(err)
	}
	c.stopPipe.Close() // as the end of this process would
	<-c.done
	c.close()
}

func TestStartProcess_KillsServerOfPreviousRun(t *testing.T) {
	shortenStopTimeout(t)
	p := helperServer(t, neverStops)
	c, err := startProcess(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	first := readPID(p.pidFile)
	// The server alone is left.
	syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL)
	c.ownerLock.Close()
	again, err := startProcess(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer again.stop()
	if readPID(p.pidFile) == first {
		t.Error("the server of the last run is still there")
	}
	c.close()
}
