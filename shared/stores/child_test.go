package stores

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

// TestServer is not a test of its own: it is a server that writes its process id to STORES_PID and ends with the
// signal STORES_ENDURES and one more.
func TestServer(t *testing.T) {
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

// server is a program that runs TestServer.
func server(t *testing.T, endures int) program {
	t.Helper()
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	t.Setenv("STORES_PID", pidFile)
	t.Setenv("STORES_ENDURES", strconv.Itoa(endures))
	return program{
		argv: []string{os.Args[0], "-test.run=^TestServer$"}, dir: dir, pidFile: pidFile, signal: "INT",
		ready: func() bool { return readPid(pidFile) > 0 },
	}
}

// stubborn is more signals than any test sends.
const stubborn = 1 << 30

func shortly(t *testing.T) {
	t.Helper()
	before := stopWithin
	stopWithin = 200 * time.Millisecond
	t.Cleanup(func() { stopWithin = before })
}

func TestAServerThatMissesASignalIsToldAgain(t *testing.T) {
	c, err := start(t.Context(), server(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptedStartStopsItsServer(t *testing.T) {
	p := server(t, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	up := p.ready
	p.ready = func() bool {
		if up() {
			interrupt()
		}
		return false
	}
	if _, err := start(ctx, p); err == nil || !strings.Contains(err.Error(), "did not get ready") {
		t.Errorf("start: %v", err)
	}
	awaitStopped(t, p.dir)
}

func TestAServerThatDoesNotStopIsKilled(t *testing.T) {
	shortly(t)
	c, err := start(t.Context(), server(t, stubborn))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop: %v", err)
	}
}

func TestTheWatchdogKillsAServerThatOutlivesItsOwner(t *testing.T) {
	shortly(t)
	c, err := start(t.Context(), server(t, stubborn))
	if err != nil {
		t.Fatal(err)
	}
	c.leash.Close() // as the end of this process would
	<-c.done
	c.close()
}

func TestAServerOfTheLastRunThatDoesNotStopIsKilled(t *testing.T) {
	shortly(t)
	p := server(t, stubborn)
	c, err := start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	first := readPid(p.pidFile)
	// The server alone is left.
	syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL)
	c.owner.Close()
	again, err := start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer again.stop()
	if readPid(p.pidFile) == first {
		t.Error("the server of the last run is still there")
	}
	c.close()
}
