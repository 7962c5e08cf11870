package web

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

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
)

// TestMain makes the test binary stand in for a deployed function when the tests below start it as one.
func TestMain(m *testing.M) {
	switch os.Getenv("WEB_TEST_CHILD") {
	case "serve":
		serveLikeFramework()
	case "broken":
		Register("Broken", "GET /x", func(context.Context) (Handler, error) {
			return nil, errors.Join(errors.New("REDIS_ADDR is missing"), errors.New("PEPPER is no base64"))
		})
		fmt.Println("was opened")
	case "ahead":
		serveWithWarmUp()
	default:
		os.Exit(m.Run())
	}
}

// serveLikeFramework listens without any means to shut down. A request with ?wait answers "begun", and "done" once
// stdin ends.
func serveLikeFramework() {
	door := Register("Work", "GET /work", func(context.Context) (Handler, error) {
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
	panic(http.Serve(listener, door))
}

// childCommand starts this binary as a deployed function.
func childCommand(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func TestDrain_SIGTERMWaitsForRequestsInFlight(t *testing.T) {
	cmd := childCommand(t, "WEB_TEST_CHILD=serve", "FUNCTION_TARGET=Work")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var records bytes.Buffer
	cmd.Stdout = &records
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(address) + "/work"

	response, err := http.Get(url + "?wait")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := bufio.NewReader(response.Body)
	if line, err := body.ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The signal has arrived when an answer ends its connection. Who was on the way to this process is answered even so.
	for last := false; !last; {
		next, err := http.Get(url)
		if err != nil {
			t.Fatalf("the process left a request in flight: %v", err)
		}
		_, _ = io.Copy(io.Discard, next.Body)
		next.Body.Close()
		last = next.Close
		if next.StatusCode != http.StatusOK {
			t.Fatalf("turned away with %d %v", next.StatusCode, next.Header)
		}
	}
	hold.Close()
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "done\n" {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if text := records.String(); !strings.Contains(text, `"message":"GET /work"`) || strings.Contains(text, `"status":503`) {
		t.Errorf("records %s", text)
	}
}

func TestDrain_SIGTERMHandledAsSoonAsProcessListens(t *testing.T) {
	for range 10 { // half of them died while nothing saw to it
		cmd := childCommand(t, "WEB_TEST_CHILD=serve", "FUNCTION_TARGET=Work", "GOMAXPROCS=1") // one thing at a time, as on one processor
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("exit: %v", err)
		}
	}
}

func TestDrain_FlushesTelemetryBeforeExit(t *testing.T) {
	collector := otlptest.Open(t)
	cmd := childCommand(t, "WEB_TEST_CHILD=serve", "FUNCTION_TARGET=Work")
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
	const requests = 5 // within a second of which only the first sends anything
	for range requests {
		response, err := http.Get("http://" + strings.TrimSpace(address) + "/work")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if spans, counted := len(collector.Spans("GET /work")), collector.Metric("http.server.request.duration"); spans != requests || counted != requests {
		t.Errorf("%d spans and %v counted of %d requests", spans, counted, requests)
	}
}

func TestDrain_StopsAtTimeoutAndRejectsRequests(t *testing.T) {
	inFlight.Add(1)
	defer inFlight.Add(-1)
	defer draining.Store(false)
	defer rejecting.Store(false)
	drain(0)
	w := httptest.NewRecorder()
	newTestFunction(t, "GET /x", okHandler).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if p := readProblem(t, w); w.Code != 503 || p.Code != problem.UpstreamUnavailable.PublicCode() || !w.Flushed {
		t.Errorf("%d %s, flushed %v", w.Code, p.Code, w.Flushed)
	}
}

func TestRegister_BadConfigurationExitsWithAllErrors(t *testing.T) {
	cmd := childCommand(t, "WEB_TEST_CHILD=broken", "FUNCTION_TARGET=Broken", "TRUSTED_HOPS=many")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, isExit := errors.AsType[*exec.ExitError](err); !isExit || exit.ExitCode() != 1 || stdout.Len() > 0 {
		t.Fatalf("%v, printed %q", err, &stdout)
	}
	var record map[string]any
	if err := json.Unmarshal(stderr.Bytes(), &record); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	for _, part := range []string{"REDIS_ADDR is missing", "PEPPER is no base64", "TRUSTED_HOPS"} {
		if text, _ := record["err"].(string); !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	if record["severity"] != "ERROR" {
		t.Errorf("record %v", record)
	}
}

func TestRegister_OpensOnlyTheTargetFunction(t *testing.T) {
	cmd := childCommand(t, "WEB_TEST_CHILD=broken", "FUNCTION_TARGET=Other")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "was opened\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestFunctions_SortedByNameAndValidated(t *testing.T) {
	saved := registry
	registry = map[string]*Function{}
	defer func() { registry = saved }()
	build := func(context.Context) (Handler, error) { return okHandler, nil }
	for _, name := range []string{"SearchMap", "Facets", "Search"} {
		Register(name, "GET /"+name, build)
	}
	var names []string
	for _, f := range Functions() {
		names = append(names, f.Name+f.Path()+f.Method())
	}
	if got := strings.Join(names, " "); got != "Facets/FacetsGET Search/SearchGET SearchMap/SearchMapGET" {
		t.Errorf("functions %s", got)
	}
	for rule, register := range map[string]func(){
		"twice":      func() { Register("Search", "GET /x", build) },
		"no method":  func() { Register("A", "/x", build) },
		"no pattern": func() { Register("B", "", build) },
		"no path":    func() { Register("C", "GET x", build) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered", rule)
				}
			}()
			register()
		}()
	}
}

func TestFunctionOpen_ReportsConfigurationErrors(t *testing.T) {
	broken := errors.New("REDIS_ADDR is missing")
	f := newTestFunction(t, "GET /x", okHandler)
	f.open = func(context.Context) (Handler, error) { return nil, broken }
	if err := f.Open(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	f.open = func(context.Context) (Handler, error) { return okHandler, nil }
	for _, hops := range []string{"-1", "9", "x", "1.5"} {
		t.Setenv("TRUSTED_HOPS", hops)
		if err := f.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "TRUSTED_HOPS") {
			t.Errorf("TRUSTED_HOPS=%s: %v", hops, err)
		}
	}
	t.Setenv("TRUSTED_HOPS", "2")
	if err := f.Open(t.Context()); err != nil || f.state.Load().config.TrustedHops != 2 {
		t.Errorf("%v", err)
	}
}
