package lifecycle_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// TestMain lets the test binary run as a deployed function: the tests below start it as a child.
func TestMain(m *testing.M) {
	switch os.Getenv("LIFECYCLE_TEST_CHILD") {
	case "work":
		serveLikeFramework()
	case "warmup":
		serveWithWarmUp()
	default:
		os.Exit(m.Run())
	}
}

// childCommand returns a command that runs this test binary with more environment variables.
func childCommand(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// serveLikeFramework listens without a way to shut down, as the functions framework does, and
// writes its address to stderr. A request with ?wait answers "begun" at once and "done" after stdin
// ends.
func serveLikeFramework() {
	handler := web.Register("Work", "GET /work", func(context.Context, *lifecycle.WarmUp) (web.Handler, error) {
		return func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Query().Has("wait") {
				fmt.Fprintln(w, "begun")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(io.Discard, os.Stdin)
			}
			fmt.Fprintln(w, "done")
			return nil
		}, nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, listener.Addr())
	panic(http.Serve(listener, handler))
}

// startWork starts cmd, a child that runs serveLikeFramework, and returns the URL of its function.
func startWork(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(address) + "/work"
}

func TestDrain_SIGTERMWaitsForRequestsInFlight(t *testing.T) {
	t.Parallel()
	cmd := childCommand(t, "LIFECYCLE_TEST_CHILD=work", "FUNCTION_TARGET=Work")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var records bytes.Buffer
	cmd.Stdout = &records
	url := startWork(t, cmd)

	response, err := http.Get(url + "?wait")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := bufio.NewReader(response.Body)
	if line, err := body.ReadString('\n'); line != "begun\n" {
		t.Fatalf("first line is %q, %v, want begun", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The signal has arrived when a response closes its connection. Requests are still answered.
	for last := false; !last; {
		next, err := http.Get(url)
		if err != nil {
			t.Fatalf("the process exited with a request in flight: %v", err)
		}
		_, _ = io.Copy(io.Discard, next.Body)
		next.Body.Close()
		last = next.Close
		if next.StatusCode != http.StatusOK {
			t.Fatalf("status %d, want 200; headers %v", next.StatusCode, next.Header)
		}
	}
	hold.Close()
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "done\n" {
		t.Errorf("the held response ends with %q, %v, want done", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v, want status 0", err)
	}
	if text := records.String(); !strings.Contains(text, `"message":"GET /work"`) || strings.Contains(text, `"status":503`) {
		t.Errorf("log records are %s, want one of GET /work and no status 503", text)
	}
}

func TestDrain_SIGTERMHandledAsSoonAsProcessListens(t *testing.T) {
	t.Parallel()
	for range 10 { // without sigterm.Listen in Register, half of the children died
		// as on one processor
		cmd := childCommand(t, "LIFECYCLE_TEST_CHILD=work", "FUNCTION_TARGET=Work", "GOMAXPROCS=1")
		startWork(t, cmd)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("exit: %v, want status 0", err)
		}
	}
}

func TestDrain_FlushesTelemetryBeforeExit(t *testing.T) {
	collector := otlptest.Open(t)
	cmd := childCommand(t, "LIFECYCLE_TEST_CHILD=work", "FUNCTION_TARGET=Work")
	url := startWork(t, cmd)
	const requests = 5 // within one second, in which only the first request exports
	for range requests {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v, want status 0", err)
	}
	if spans, counted := len(collector.Spans("GET /work")), collector.Metric("http.server.request.duration"); spans != requests || counted != requests {
		t.Errorf("exported %d spans and a count of %v, want %d", spans, counted, requests)
	}
}

// serveWithWarmUp registers a function with a warm-up dial that fails once the process "listens",
// and then serves one request. The order of events goes to stderr.
func serveWithWarmUp() {
	listens := make(chan struct{})
	handler := web.Register("Early", "GET /x", func(_ context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
		warmUp.Dial("a store", func(context.Context) error {
			<-listens
			os.Stderr.WriteString("dialled\n")
			return errors.New("connection refused")
		})
		return func(http.ResponseWriter, *http.Request) error {
			os.Stderr.WriteString("served\n")
			return nil
		}, nil
	})
	os.Stderr.WriteString("listening\n")
	close(listens)
	handler(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
}

func TestWarmUp_RequestsWaitForDialButListenerDoesNot(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{"Early": "listening\ndialled\nserved\n", "Other": "listening\n"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			cmd := childCommand(t, "LIFECYCLE_TEST_CHILD=warmup", "FUNCTION_TARGET="+target)
			var events bytes.Buffer
			cmd.Stderr = &events
			records, err := cmd.Output()
			if _, exited := errors.AsType[*exec.ExitError](err); exited || events.String() != want {
				t.Errorf("events are %q, %v, want %q", &events, err, want)
			}
			if got, want := strings.Contains(string(records), "connection refused"), target == "Early"; got != want {
				t.Errorf("dial error is logged: %v, want %v; records %s", got, want, records)
			}
		})
	}
}
