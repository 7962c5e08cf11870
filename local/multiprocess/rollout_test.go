package multiprocess

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// instance is a process of a function. Safe for concurrent use.
type instance struct {
	url    string
	cmd    *exec.Cmd
	client *http.Client
	stderr bytes.Buffer
	exited chan struct{}
	unsent sync.WaitGroup // requests assigned to the process and not yet written to its connection
}

// deployedFunction is a function and its current process, which receives the requests.
type deployedFunction struct {
	op      gateway.Operation
	request servertest.RouteRequest // from the root
	newPush func() string           // returns the body of a push, for internal functions; nil for public ones
	mu      sync.RWMutex
	current *instance
}

// assignedRequest is a request that is assigned to a process.
type assignedRequest struct {
	instance *instance
	sent     chan struct{} // closed when the request is written, or has ended
	markSent func()
}

// assign assigns a request to the current process.
func (d *deployedFunction) assign() *assignedRequest {
	d.mu.RLock()
	defer d.mu.RUnlock()
	g := d.current
	g.unsent.Add(1)
	sent := make(chan struct{})
	return &assignedRequest{g, sent, sync.OnceFunc(func() { g.unsent.Done(); close(sent) })}
}

// withTrace marks the request as sent when it has been written.
func (to *assignedRequest) withTrace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { to.markSent() }})
}

// swap makes g the current process and returns the one before.
func (d *deployedFunction) swap(g *instance) *instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.current
	d.current = g
	return old
}

// startInstance starts a process of a function and waits until it listens. The process ends with
// the test.
func startInstance(t *testing.T, target string, env map[string]string) *instance {
	t.Helper()
	port := servertest.FreePort(t)
	g := &instance{
		url: "http://127.0.0.1:" + strconv.Itoa(port), cmd: exec.Command(os.Args[0]), exited: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	g.cmd.Env = []string{"FUNCTION_TARGET=" + target, "PORT=" + strconv.Itoa(port)}
	for name, value := range env {
		g.cmd.Env = append(g.cmd.Env, name+"="+value)
	}
	g.cmd.Stderr = &g.stderr
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.cmd.Wait(); close(g.exited) }()
	t.Cleanup(func() {
		g.cmd.Process.Kill()
		<-g.exited
		if t.Failed() && g.stderr.Len() > 0 {
			t.Logf("%s: %s", target, &g.stderr)
		}
	})
	if err := servertest.WaitListening(strings.TrimPrefix(g.url, "http://"), g.exited); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return g
}

// loadGenerator sends requests to functions and counts the responses.
type loadGenerator struct {
	cookies  []string
	requests atomic.Int64
	wg       sync.WaitGroup

	mu       sync.Mutex
	failures []string
	statuses map[int]int // by status; 0 is an error
	retries  []string    // failed pushes that were repeated
	tokens   []string    // of handoffs that are not consumed
}

// send sends a request in a goroutine. A failed push is repeated with the broker's backoff. The
// channel is closed when the first request has been written.
func (l *loadGenerator) send(ctx context.Context, d *deployedFunction) <-chan struct{} {
	n := l.requests.Add(1)
	body := d.request.Body
	if d.newPush != nil {
		body = d.newPush()
	}
	first := d.assign()
	l.wg.Go(func() {
		status, err := l.sendOnce(ctx, d, first, n, body)
		for pause := pubsub.DefaultBackoff.Min; d.newPush != nil && (err != nil || status >= 300) && pause <= pubsub.DefaultBackoff.Max; pause *= 2 {
			<-time.After(pause) // the broker's backoff
			l.locked(func() { l.retries = append(l.retries, fmt.Sprintf("%s: %d %v", d.op.Function, status, err)) })
			status, err = l.sendOnce(ctx, d, d.assign(), n, body)
		}
		l.locked(func() {
			l.statuses[status]++
			if err != nil || status >= 300 {
				l.failures = append(l.failures, fmt.Sprintf("%s: %d %v", d.op.Function, status, err))
			}
		})
	})
	return first.sent
}

func (l *loadGenerator) locked(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
}

func (l *loadGenerator) sendOnce(ctx context.Context, d *deployedFunction, to *assignedRequest, n int64, body string) (int, error) {
	defer to.markSent()
	req, err := http.NewRequestWithContext(to.withTrace(ctx), d.op.Method, to.instance.url+d.request.Path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d.newPush == nil {
		req.Header.Set("Idempotency-Key", "rollout-"+strconv.FormatInt(n, 10))
		if d.op.Function != "SessionClear" { // a cleared session would fail the other requests
			req.Header.Set("Cookie", l.cookies[n%int64(len(l.cookies))])
		}
	}
	res, err := to.instance.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = errors.New(string(text))
	}
	if err == nil && d.op.Function == "Handoff" {
		err = l.keepToken(text)
	}
	return res.StatusCode, err
}

const (
	guestRequestsPerSecond   = 200
	inFlightAtSwitch         = 3 // extra requests that the old process has received when it gets SIGTERM
	guestRequestsPerInternal = 4 // guest requests per internal request
)

// The test replaces the process of each function in turn, as a rollout does: the new process
// receives all requests as soon as it listens, then the old process gets SIGTERM while it has
// requests in flight. Meanwhile guests send 200 requests a second to all routes, and no request may
// fail. Failed pushes are repeated, as Pub/Sub does, and a tenant's BFF retries as it does in
// production. Every event must arrive, and every handoff must be consumed.
func TestRollout_LosesNoRequestAndNoEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every function")
	}
	state := servertest.StateDir(t)
	s := servertest.Start(t, state)
	env := servertest.FunctionEnv(t, state)
	l := &loadGenerator{statuses: map[int]int{}}
	var hotel map[string]any
	for range 32 {
		res, found := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul"))
		l.cookies = append(l.cookies, "gms_id="+res.Cookies()[0].Value)
		hotel = found["listings"].([]any)[0].(map[string]any)
	}
	guests := publicFunctions(t, servertest.RouteRequests(hotel["propertyId"].(string), hotel["tenantId"].(string)))
	private := internalFunctions(t)
	bff := newTenantBFF(t, private, state, env)
	all := slices.Concat(guests, private)
	for _, d := range all {
		d.current = startInstance(t, d.op.Function, env)
	}

	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	ticks := make(chan struct{})
	go func() {
		defer close(ticks)
		next := time.NewTicker(time.Second / guestRequestsPerSecond)
		defer next.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-next.C: // a busy machine skips ticks; the loop below catches up
			}
			for ; n < int(time.Since(began).Seconds()*guestRequestsPerSecond); n++ {
				l.send(t.Context(), guests[n%len(guests)])
				if n%guestRequestsPerInternal == 0 {
					l.sendInternal(t.Context(), private[n/guestRequestsPerInternal%len(private)], bff)
				}
			}
		}
	}()
	for _, d := range all {
		l.replaceInstance(t, d, startInstance(t, d.op.Function, env))
	}
	took := time.Since(began)
	stop()
	<-ticks
	l.wg.Wait()
	for len(l.tokens) > 0 {
		l.consumeTokens(t.Context(), bff)
	}
	l.wg.Wait()
	if len(l.failures) > 0 {
		t.Errorf("%d of %d requests failed:\n%s", len(l.failures), l.requests.Load(), strings.Join(l.failures[:min(len(l.failures), 20)], "\n"))
	}
	t.Logf("%d functions in %v, %d requests, %.0f a second: %v; %d pushes repeated", len(all), took.Round(time.Millisecond), l.requests.Load(),
		float64(l.requests.Load())/took.Seconds(), l.statuses, len(l.retries))
	for _, push := range l.retries {
		t.Logf("repeated: %.300s", push)
	}
	checkAllPublished(t, s, env["DATABASE_URL"])
}

// replaceInstance makes g the current process, ends the old process with SIGTERM and waits for its
// end. The exit status must be 0.
func (l *loadGenerator) replaceInstance(t *testing.T, d *deployedFunction, g *instance) {
	t.Helper()
	var sent []<-chan struct{}
	for range inFlightAtSwitch {
		if d.op.Function == "Consume" {
			break // its requests need tokens
		}
		sent = append(sent, l.send(t.Context(), d))
	}
	for _, s := range sent {
		<-s
	}
	old := d.swap(g)
	old.unsent.Wait() // the platform sends no SIGTERM while it hands over a request
	if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-old.exited
	if !old.cmd.ProcessState.Success() {
		t.Errorf("%s ended: %v", d.op.Function, old.cmd.ProcessState)
	}
}

// publicFunctions returns the public functions with a valid request of each.
func publicFunctions(t *testing.T, table map[string]servertest.RouteRequest) []*deployedFunction {
	t.Helper()
	var all []*deployedFunction
	operations, err := gateway.Operations(filepath.Join(servertest.Root(t), "api", "consumer.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range operations {
		v := table[op.Function]
		v.Path = web.BasePath + v.Path
		all = append(all, &deployedFunction{op: op, request: v})
		delete(table, op.Function)
	}
	if len(table) > 0 {
		t.Fatalf("not in the API document: %v", slices.Sorted(maps.Keys(table)))
	}
	slices.SortFunc(all, func(a, b *deployedFunction) int { return cmp.Compare(a.op.Function, b.op.Function) })
	return all
}
