package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestRoutes_MatchAPIDocuments(t *testing.T) {
	for document, base := range map[string]string{"consumer": web.BasePath, "internal": "/internal"} {
		operations, err := gateway.Operations(filepath.Join("..", "api", document+".openapi.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gateway.New(base, operations, web.Functions()); err != nil {
			t.Error(err)
		}
		for _, op := range operations {
			if _, err := os.Stat(filepath.Join("..", "functions", op.Folder, "function.go")); err != nil {
				t.Errorf("%s has the tag %s, which is no folder: %v", op.Function, op.Folder, err)
			}
		}
	}
}

func upstreamCallCount(t *testing.T, url, upstream string) float64 {
	t.Helper()
	_, answer := servertest.Call(t, http.MethodGet, url+"/_local/upstreams", "")
	return answer[upstream].(map[string]any)["calls"].(float64)
}

func TestServer_SearchesFailsOnDemandAndRestarts(t *testing.T) {
	dir := servertest.StateDir(t)
	s := servertest.StartPrivate(t, dir)
	if res, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/healthz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("health: %v", answer)
	}
	if n := upstreamCallCount(t, s.URL, "search"); n != 0 {
		t.Errorf("%v calls to search-aggregation before the first guest, want 0", n)
	}
	if left := servertest.TelemetryMessages(t, s, "", 0); len(left) != 0 {
		t.Errorf("the probe published events: %v", left)
	}
	for _, cached := range []string{"MISS", "HIT"} {
		res, answer := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("هرات"))
		if res.StatusCode != http.StatusOK || res.Header.Get("X-Cache") != cached || len(answer["listings"].([]any)) == 0 {
			t.Fatalf("%d %s %v", res.StatusCode, res.Header.Get("X-Cache"), answer)
		}
		if n := upstreamCallCount(t, s.URL, "search"); n != 1 {
			t.Errorf("%v calls to search-aggregation, want 1", n)
		}
	}
	servertest.Call(t, http.MethodPut, s.URL+"/_local/upstreams/search", `{"status":500}`)
	if res, answer := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul")); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("search while search-aggregation fails: %d %v, want 503", res.StatusCode, answer)
	}
	if res, _ := servertest.Call(t, http.MethodGet, s.URL+"/_local/healthz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("healthz with an upstream that fails on purpose: %d, want 200", res.StatusCode)
	}

	if _, err := server.Start(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard}); err == nil || !strings.Contains(err.Error(), "already runs at "+s.URL) {
		t.Errorf("a second server with the same state: %v, want an error with the first one's URL", err)
	}
	runSearchFolder(t, dir)
	s.Stop()
	if _, err := http.Get(s.URL); err == nil {
		t.Error("a stopped server answers")
	}
	again := servertest.StartPrivate(t, dir)
	if res, _ := servertest.Call(t, http.MethodPost, again.URL+web.BasePath+"/search", servertest.SearchBody("Kabul")); res.StatusCode != http.StatusOK {
		t.Errorf("search after a restart: %d, want 200", res.StatusCode)
	}
}

// runSearchFolder runs the search folder beside the server with a state directory, and checks its
// routes.
func runSearchFolder(t *testing.T, dir string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready := &lineWriter{done: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- server.RunFolder(ctx, server.Options{Root: "..", State: dir, Out: ready}, "search") }()
	select {
	case <-ready.done:
	case err := <-ended:
		t.Fatal(err)
	}
	url := strings.Fields(ready.text.String())[1]
	if res, answer := servertest.Call(t, http.MethodGet, url+web.BasePath+"/facets?country=AF", ""); res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusOK {
		t.Errorf("facets of the folder: %d %v, want 503 or 200", res.StatusCode, answer)
	}
	if res, answer := servertest.Call(t, http.MethodGet, url+"/_local/flags", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("%d %v", res.StatusCode, answer)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := server.RunFolder(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard}, "brew"); err == nil || !strings.Contains(err.Error(), "the folders are search") {
		t.Errorf("an unknown folder: %v, want an error with the folders", err)
	}
}

// lineWriter is a writer that closes done after the first line.
type lineWriter struct {
	once sync.Once
	text bytes.Buffer
	done chan struct{}
}

func (l *lineWriter) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	if bytes.HasSuffix(p, []byte("\n")) {
		l.once.Do(func() { close(l.done) })
	}
	return n, err
}

func TestStart_ErrorNamesReason(t *testing.T) {
	taken := usedPort(t)
	for name, c := range map[string]struct {
		options server.Options
		reason  string
	}{
		"port in use":             {server.Options{Root: "..", Port: taken}, "is in use: stop the process that listens there, or choose another port with --port"},
		"missing dataset":         {server.Options{Root: "..", Dataset: "missing.jsonl"}, "missing.jsonl"},
		"not a repository":        {server.Options{Root: t.TempDir()}, "consumer.openapi.yaml"},
		"no server runs (--only)": {server.Options{Root: ".."}, "no local system runs"},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.State, c.options.Out = servertest.StateDir(t), io.Discard
			var err error
			if strings.Contains(name, "--only") {
				err = server.RunFolder(t.Context(), c.options, "search")
			} else {
				_, err = server.Start(t.Context(), c.options)
			}
			if missing, ok := errors.AsType[localstores.MissingError](err); ok && os.Getenv("CI") == "" {
				t.Skip(missing)
			}
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want one with %q", err, c.reason)
			}
		})
	}
}

func TestRun_InterruptedStartReturnsNil(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	if err := server.Run(ctx, server.Options{Root: "..", State: servertest.StateDir(t), Out: &out}); err != nil || out.String() != "stopping\n" {
		t.Errorf("Run: %v, output %q; want nil, \"stopping\\n\"", err, out.String())
	}
}

func TestCommandLine_InvalidArgumentsPrintUsage(t *testing.T) {
	stderr := os.Stderr
	os.Stderr, _ = os.Open(os.DevNull)
	defer func() { os.Stderr = stderr }()
	for _, args := range [][]string{
		nil, {"fly"}, {"run", "--colour"}, {"run", "now"}, {"migrate", "--dataset", "x"},
		{"run", "--port", "99999"}, {"run", "--port", "-1"}, {"run", "--retry-least", "1m"}, {"run", "--only", "search"},
	} {
		if err := run(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("run(%q) = %v, want errUsage", args, err)
		}
	}
	for _, verb := range []string{"run", "migrate"} {
		if err := run(t.Context(), []string{verb, "-h"}); err != nil {
			t.Errorf("run(%q, -h) = %v, want nil", verb, err)
		}
	}
}

// usedPort returns a port that this process listens on until the test ends.
func usedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
