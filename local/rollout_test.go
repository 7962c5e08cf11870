package main

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

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// program has every function, as the platform starts one: without the race detector, so that it keeps up.
const program = `package main

import (
	"log"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
IMPORTS)

func main() { log.Fatal(funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT"))) }
`

func buildProgram(t *testing.T) string {
	t.Helper()
	functions, err := os.ReadFile("functions.go")
	if err != nil {
		t.Fatal(err)
	}
	_, imports, _ := strings.Cut(string(functions), "import (\n")
	imports, _, _ = strings.Cut(imports, ")")
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "functions")
	if err := os.WriteFile(source, []byte(strings.Replace(program, "IMPORTS", imports, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, source)
	cmd.Env = append(os.Environ(), "GOWORK=off") // as localProgram, whose packages these are
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// generation is a process of a function. Safe for concurrent use.
type generation struct {
	url    string
	cmd    *exec.Cmd
	client *http.Client
	said   bytes.Buffer
	ended  chan struct{}
	took   sync.WaitGroup // requests that were handed to it and are not yet on their way
}

// deployed is a function whose requests go to its newest generation.
type deployed struct {
	op     gateway.Operation
	visit  visit         // from the root
	push   func() string // makes the body of a push instead, at a private door
	mu     sync.RWMutex
	newest *generation
}

// handed is a request in the hands of a process.
type handed struct {
	g    *generation
	sent chan struct{} // closed when it is on its way, or over
	gone func()
}

// pick is the process that a request is for.
func (d *deployed) pick() *handed {
	d.mu.RLock()
	defer d.mu.RUnlock()
	g := d.newest
	g.took.Add(1)
	sent := make(chan struct{})
	return &handed{g, sent, sync.OnceFunc(func() { g.took.Done(); close(sent) })}
}

func (to *handed) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { to.gone() }})
}

// replace sends what comes from now on to another process, and returns the one that had it.
func (d *deployed) replace(g *generation) *generation {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.newest
	d.newest = g
	return old
}

func begin(t *testing.T, binary, target string, env map[string]string) *generation {
	t.Helper()
	port := freePort(t)
	g := &generation{
		url: "http://127.0.0.1:" + strconv.Itoa(port), cmd: exec.Command(binary), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	g.cmd.Env = []string{"FUNCTION_TARGET=" + target, "PORT=" + strconv.Itoa(port)}
	for name, value := range env {
		g.cmd.Env = append(g.cmd.Env, name+"="+value)
	}
	g.cmd.Stderr = &g.said
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.cmd.Wait(); close(g.ended) }()
	t.Cleanup(func() {
		g.cmd.Process.Kill()
		<-g.ended
		if t.Failed() && g.said.Len() > 0 {
			t.Logf("%s: %s", target, &g.said)
		}
	})
	if err := listens(strings.TrimPrefix(g.url, "http://"), g.ended); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return g
}

// load asks functions and counts what comes back.
type load struct {
	cookies []string
	asked   atomic.Int64
	ongoing sync.WaitGroup

	mu      sync.Mutex
	lost    []string
	answers map[int]int // by status; 0 is an error
	again   []string    // pushes that were not taken, and came again
	tokens  []string    // of handoffs that were not used yet
}

// ask asks a function once. The channel is closed when the request is on its way.
func (l *load) ask(ctx context.Context, d *deployed) <-chan struct{} {
	n := l.asked.Add(1)
	body := d.visit.body
	if d.push != nil {
		body = d.push()
	}
	first := d.pick()
	l.ongoing.Go(func() {
		status, err := l.once(ctx, d, first, n, body)
		for pause := broker.Local.Least; d.push != nil && (err != nil || status >= 300) && pause <= broker.Local.Most; pause *= 2 {
			<-time.After(pause) // the broker's; its message comes again until it is taken
			l.note(func() { l.again = append(l.again, fmt.Sprintf("%s: %d %v", d.op.Function, status, err)) })
			status, err = l.once(ctx, d, d.pick(), n, body)
		}
		l.note(func() {
			l.answers[status]++
			if err != nil || status >= 300 {
				l.lost = append(l.lost, fmt.Sprintf("%s: %d %v", d.op.Function, status, err))
			}
		})
	})
	return first.sent
}

func (l *load) note(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
}

func (l *load) once(ctx context.Context, d *deployed, to *handed, n int64, body string) (int, error) {
	defer to.gone()
	req, err := http.NewRequestWithContext(to.traced(ctx), d.op.Method, to.g.url+d.visit.path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d.push == nil {
		req.Header.Set("Idempotency-Key", "rollout-"+strconv.FormatInt(n, 10))
		if d.op.Function != "SessionClear" { // whose session is gone is a stranger to the others
			req.Header.Set("Cookie", l.cookies[n%int64(len(l.cookies))])
		}
	}
	res, err := to.g.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = errors.New(string(text))
	}
	if err == nil && d.op.Function == "Handoff" {
		err = l.minted(text)
	}
	return res.StatusCode, err
}

const (
	rate  = 200 // requests of guests a second
	burst = 3   // more of the function that is replaced, in its old process's hands when that is told to end
	doors = 4   // so many requests of guests to one at a private door
)

// TestARolloutOfEveryFunctionLosesNothing replaces the process of each function, one after the other, as a rollout does: requests go
// to the new one as soon as it listens, then the old one gets SIGTERM, with requests in its hands. All the while guests ask every route, 200
// times a second in all, and not one may be refused. What Pub/Sub pushes is pushed again until it is taken, what a tenant's BFF asks as often
// as it does; of that, every event must arrive, and every handoff be used.
func TestARolloutOfEveryFunctionLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every function")
	}
	binary := buildProgram(t)
	state := stateDir(t)
	s := start(t, state)
	env := settings(t, state)
	l := &load{answers: map[int]int{}}
	var hotel map[string]any
	for range 32 {
		res, found := ask(t, http.MethodPost, s.URL+web.Base+"/search", searchFor("Kabul"))
		l.cookies = append(l.cookies, "gms_id="+res.Cookies()[0].Value)
		hotel = found["listings"].([]any)[0].(map[string]any)
	}
	guests := everyFunction(t, visits(hotel["propertyId"].(string), hotel["tenantId"].(string)))
	private := everyDoor(t)
	bff := receivingAt(t, private, state, env)
	all := slices.Concat(guests, private)
	for _, d := range all {
		d.newest = begin(t, binary, d.op.Function, env)
	}

	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	ticks := make(chan struct{})
	go func() {
		defer close(ticks)
		next := time.NewTicker(time.Second / rate)
		defer next.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-next.C: // a slow machine leaves ticks out
			}
			for ; n < int(time.Since(began).Seconds()*rate); n++ {
				l.ask(t.Context(), guests[n%len(guests)])
				if n%doors == 0 {
					l.knock(t.Context(), private[n/doors%len(private)], bff)
				}
			}
		}
	}()
	for _, d := range all {
		l.roll(t, d, begin(t, binary, d.op.Function, env))
	}
	took := time.Since(began)
	stop()
	<-ticks
	l.ongoing.Wait()
	for len(l.tokens) > 0 {
		l.use(t.Context(), bff)
	}
	l.ongoing.Wait()
	if len(l.lost) > 0 {
		t.Errorf("%d lost of %d:\n%s", len(l.lost), l.asked.Load(), strings.Join(l.lost[:min(len(l.lost), 20)], "\n"))
	}
	t.Logf("%d functions in %v, %d requests, %.0f a second: %v; %d pushed again", len(all), took.Round(time.Millisecond), l.asked.Load(),
		float64(l.asked.Load())/took.Seconds(), l.answers, len(l.again))
	for _, push := range l.again {
		t.Logf("again: %.300s", push)
	}
	allTold(t, s, env["DATABASE_URL"])
}

// roll replaces a process by another and waits until the old one has ended.
func (l *load) roll(t *testing.T, d *deployed, g *generation) {
	t.Helper()
	var sent []<-chan struct{}
	for range burst {
		if d.op.Function == "Consume" {
			break // whose requests are those of handoffs
		}
		sent = append(sent, l.ask(t.Context(), d))
	}
	for _, s := range sent {
		<-s
	}
	old := d.replace(g)
	old.took.Wait() // the platform does not end a process that it is handing a request to
	if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-old.ended
	if !old.cmd.ProcessState.Success() {
		t.Errorf("%s ended: %v", d.op.Function, old.cmd.ProcessState)
	}
}

// everyFunction has each of guests' functions with a good request of it, as the table of all routes has it.
func everyFunction(t *testing.T, table map[string]visit) []*deployed {
	t.Helper()
	var all []*deployed
	operations, err := gateway.Operations(filepath.Join("..", "api", "consumer.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range operations {
		v := table[op.Function]
		v.path = web.Base + v.path
		all = append(all, &deployed{op: op, visit: v})
		delete(table, op.Function)
	}
	if len(table) > 0 {
		t.Fatalf("not in the API document: %v", slices.Sorted(maps.Keys(table)))
	}
	slices.SortFunc(all, func(a, b *deployed) int { return cmp.Compare(a.op.Function, b.op.Function) })
	return all
}
