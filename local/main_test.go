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
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
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
				t.Errorf("%s is tagged %s: %v", op.Function, op.Folder, err)
			}
		}
	}
}

// stateDir is a directory that everybody can reach: root's Postgres, which is not root, is among them.
func stateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, open := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startServer runs a whole system in a directory until the test ends, with limits and the hunt for bots off: a test is one client
// who asks a lot.
func startServer(t *testing.T, dir string) *server.Server {
	t.Helper()
	for _, name := range []string{"DATABASE_URL", "REDIS_ADDR", "PUBSUB_EMULATOR_HOST", "PUBSUB_PROJECT"} {
		t.Setenv(name, "")
	}
	s, err := server.Start(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard})
	if missing, ok := errors.AsType[localstores.MissingError](err); ok && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	setFlags(t, s, `{"limitsEnabled":false,"botMode":"off"}`)
	return s
}

func setFlags(t *testing.T, s *server.Server, document string) {
	t.Helper()
	if res, answer := call(t, http.MethodPut, s.URL+"/_local/flags", document); res.StatusCode != http.StatusOK {
		t.Fatalf("flags: %d %v", res.StatusCode, answer)
	}
}

// call calls a route; headers replace others.
func call(t *testing.T, method, url, body string, headers ...string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	req.Header.Set("Accept-Language", "ar")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(req.URL.Path, web.BasePath+"/") {
		functest.ValidateResponse(t, "../api/consumer.openapi.yaml", req, &functest.Result{Response: res, Text: string(text)})
	}
	var answer map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%s %s: %v: %s", method, url, err, text)
		}
	}
	return res, answer
}

func searchBody(city string) string {
	arrival := time.Now().AddDate(0, 0, 20)
	return `{"geo":{"mode":"city","city":"` + city + `"},"dates":{"checkIn":"` + arrival.Format(time.DateOnly) + `","checkOut":"` +
		arrival.AddDate(0, 0, 2).Format(time.DateOnly) + `"},"occupancy":{"adults":2,"children":0,"rooms":1}}`
}

func upstreamCallCount(t *testing.T, url, upstream string) float64 {
	t.Helper()
	_, answer := call(t, http.MethodGet, url+"/_local/upstreams", "")
	return answer[upstream].(map[string]any)["calls"].(float64)
}

func TestServer_SearchesFailsOnDemandAndRestarts(t *testing.T) {
	dir := stateDir(t)
	s := startServer(t, dir)
	if res, answer := call(t, http.MethodGet, s.URL+"/_local/healthz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("health: %v", answer)
	}
	if n := upstreamCallCount(t, s.URL, "search"); n != 0 {
		t.Errorf("%v calls before the first guest", n)
	}
	if left := telemetryMessages(t, s, "", 0); len(left) != 0 {
		t.Errorf("the probe left events: %v", left)
	}
	for _, cached := range []string{"MISS", "HIT"} {
		res, answer := call(t, http.MethodPost, s.URL+web.BasePath+"/search", searchBody("هرات"))
		if res.StatusCode != http.StatusOK || res.Header.Get("X-Cache") != cached || len(answer["listings"].([]any)) == 0 {
			t.Fatalf("%d %s %v", res.StatusCode, res.Header.Get("X-Cache"), answer)
		}
		if n := upstreamCallCount(t, s.URL, "search"); n != 1 {
			t.Errorf("%v calls to search", n)
		}
	}
	call(t, http.MethodPut, s.URL+"/_local/upstreams/search", `{"status":500}`)
	if res, answer := call(t, http.MethodPost, s.URL+web.BasePath+"/search", searchBody("Kabul")); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("with search failing: %d %v", res.StatusCode, answer)
	}
	if res, _ := call(t, http.MethodGet, s.URL+"/_local/healthz", ""); res.StatusCode != http.StatusOK {
		t.Error("a service that fails on purpose is ill")
	}

	if _, err := server.Start(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard}); err == nil || !strings.Contains(err.Error(), "already runs at "+s.URL) {
		t.Errorf("a second system in the same directory: %v", err)
	}
	runSearchFolder(t, dir)
	s.Stop()
	if _, err := http.Get(s.URL); err == nil {
		t.Error("a stopped system answers")
	}
	again := startServer(t, dir)
	if res, _ := call(t, http.MethodPost, again.URL+web.BasePath+"/search", searchBody("Kabul")); res.StatusCode != http.StatusOK {
		t.Errorf("the second run: %d", res.StatusCode)
	}
}

// runSearchFolder serves the search functions by themselves beside the system of a directory.
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
	if res, answer := call(t, http.MethodGet, url+web.BasePath+"/facets?country=AF", ""); res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusOK {
		t.Errorf("facets of a process beside: %d %v", res.StatusCode, answer)
	}
	if res, answer := call(t, http.MethodGet, url+"/_local/flags", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("%d %v", res.StatusCode, answer)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := server.RunFolder(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard}, "brew"); err == nil || !strings.Contains(err.Error(), "there is: search") {
		t.Errorf("a folder that is none: %v", err)
	}
}

// lineWriter is a writer that tells when one line has been written.
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
		"the port is taken":     {server.Options{Root: "..", Port: taken}, "is in use: stop what listens there, or choose another one with --port"},
		"no data set":           {server.Options{Root: "..", Dataset: "missing.jsonl"}, "missing.jsonl"},
		"not a repository":      {server.Options{Root: t.TempDir()}, "consumer.openapi.yaml"},
		"nothing runs (--only)": {server.Options{Root: ".."}, "no local system runs"},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.State, c.options.Out = stateDir(t), io.Discard
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
				t.Errorf("%v, want %s", err, c.reason)
			}
		})
	}
}

func TestRun_InterruptedStartReturnsNil(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	if err := server.Run(ctx, server.Options{Root: "..", State: stateDir(t), Out: &out}); err != nil || out.String() != "stopping\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestCommandLine_InvalidArgumentsPrintUsage(t *testing.T) {
	stderr := os.Stderr
	os.Stderr, _ = os.Open(os.DevNull)
	defer func() { os.Stderr = stderr }()
	for _, args := range [][]string{
		nil, {"fly"}, {"run", "--colour"}, {"run", "now"}, {"migrate", "--dataset", "x"},
		{"run", "--port", "99999"}, {"run", "--port", "-1"}, {"run", "--retry-least", "1m"}, {"run", "--only", "search"},
		{"pack"}, {"pack", "a", "b"}, {"bench", "coldstart", "--starts", "0"},
	} {
		if err := run(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, verb := range []string{"run", "migrate", "bench"} {
		if err := run(t.Context(), []string{verb, "-h"}); err != nil {
			t.Errorf("help with %s: %v", verb, err)
		}
	}
	root, err := findRepository()
	if _, missing := os.Stat(filepath.Join(root, "dev")); err != nil || missing != nil {
		t.Errorf("the repository is %s, %v", root, err)
	}
}

// usedPort is a port that somebody else has.
func usedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
