package multiprocess

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// searchState is the environment variable that makes this test binary serve the search folder
// beside the development server with that state directory.
const searchState = "MULTIPROCESS_SEARCH_STATE"

func serveSearch(state string) error {
	root, err := repository.Find()
	if err != nil {
		return err
	}
	return server.RunFolder(context.Background(), server.Options{Root: root, State: state, Out: os.Stdout}, "search")
}

// process is this test binary, serving the search folder.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcesses(t *testing.T, state string, n int) []*process {
	t.Helper()
	all := make([]*process, n)
	for i := range all {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), searchState+"="+state)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		line, err := bufio.NewReader(out).ReadString('\n')
		fields := strings.Fields(line)
		if err != nil || len(fields) < 2 || fields[0] != "ready:" {
			t.Fatalf("process %d prints %q: %v; want its URL", i, line, err)
		}
		all[i] = &process{cmd, fields[1]}
	}
	return all
}

// callerResult is the response to one caller.
type callerResult struct {
	process, status int
	err             error
}

// runStampede sends the same search from all callers at the same time, spread over the processes.
func runStampede(processes []*process, callers int, city string) []callerResult {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	outcomes := make([]callerResult, callers)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i] = searchCity(client, processes, i%len(processes), city) })
	}
	all.Wait()
	return outcomes
}

// searchCity searches a city at one process.
func searchCity(client *http.Client, processes []*process, i int, city string) callerResult {
	in := time.Now().UTC().AddDate(0, 0, 9)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 2).Format(time.DateOnly))
	o := callerResult{process: i}
	res, err := client.Post(processes[i].url+"/bff/consumer/v1/search", "application/json", strings.NewReader(body))
	if o.err = err; err == nil {
		o.status = res.StatusCode
		_, o.err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return o
}

// upstreamCounters are the counters of search-aggregation. A call is abandoned when its process
// dies, or when its hedge or the hedged call responds first. A client sends a hedge after 800 ms of
// silence, which a busy machine causes as well as a slow upstream.
type upstreamCounters struct{ Calls, Abandoned, InFlight int }

// completed returns the number of completed calls, one for each process that loaded the list.
func (a upstreamCounters) completed() int { return a.Calls - a.Abandoned }

// waitForCounters reads the counters of search-aggregation until they meet a condition, for at most
// 20 s.
func waitForCounters(t *testing.T, s *server.Server, is func(upstreamCounters) bool) upstreamCounters {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := http.Get(s.URL + "/_local/upstreams")
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]upstreamCounters
		err = json.NewDecoder(res.Body).Decode(&all)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if is(all["search"]) {
			return all["search"]
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the counters of search-aggregation are %+v after 20 s", all["search"])
		}
	}
}

func isIdle(a upstreamCounters) bool { return a.InFlight == 0 }

func setBehaviour(t *testing.T, s *server.Server, upstream, behaviour string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPut, s.URL+"/_local/upstreams/"+upstream, strings.NewReader(behaviour))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
}

const callers = 1000

// measureStarvation measures how long this machine delays runnable goroutines until the test ends.
// worst returns the longest delay so far.
func measureStarvation(t *testing.T) (worst func() time.Duration) {
	const every = 2 * time.Millisecond
	var most atomic.Int64
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := time.Now(); t.Context().Err() == nil; last = time.Now() {
			<-tick.C
			most.Store(max(most.Load(), int64(time.Since(last)-every)))
		}
	}()
	return func() time.Duration { return time.Duration(most.Load()) }
}

// checkLatencies fails when a response took longer than web.Budget plus the longest delay by the
// machine. It reads the latency from the functions' log: a caller's clock would include the queue
// of a thousand callers on two cores.
func checkLatencies(t *testing.T, state string, answers int, starved time.Duration) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(state, "log", "search-*.jsonl"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	records, late, slowest := 0, 0, time.Duration(0)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var record struct{ HTTPRequest struct{ Latency string } }
			if json.Unmarshal([]byte(line), &record) != nil || record.HTTPRequest.Latency == "" {
				continue
			}
			records++
			took, err := time.ParseDuration(record.HTTPRequest.Latency)
			if err != nil {
				t.Errorf("latency %q: %v", record.HTTPRequest.Latency, err)
			}
			if took > web.Budget+starved {
				late++
				slowest = max(slowest, took)
			}
		}
	}
	if late > 0 {
		t.Errorf("%d of %d responses took longer than %v plus %v, the slowest %v", late, records, web.Budget, starved, slowest)
	}
	if records < answers {
		t.Errorf("the logs have %d of %d responses", records, answers)
	}
}

// A single call is guaranteed only while Redis responds in time. On a busy machine it may not; the
// request log shows such requests, and the test tries another city.
func TestSearch_StampedeCallsUpstreamOnce(t *testing.T) {
	state := servertest.StateDir(t)
	s := servertest.Start(t, state)
	processes := startProcesses(t, state, 4)
	worst := measureStarvation(t)
	setBehaviour(t, s, "search", `{"latencyMs":200}`)
	cities := []string{"Herat", "Kabul", "Mazar-i-Sharif", "Kandahar"}
	for trial, city := range cities {
		before, late := waitForCounters(t, s, isIdle), countDegraded(t, state)
		for _, o := range runStampede(processes, callers, city) {
			if o.err != nil || o.status != http.StatusOK {
				t.Errorf("process %d: %d, %v", o.process, o.status, o.err)
			}
		}
		checkLatencies(t, state, callers, worst())
		after := waitForCounters(t, s, isIdle)
		if after.completed()-before.completed() == 1 {
			return
		}
		late = countDegraded(t, state) - late
		if late == 0 || trial == len(cities)-1 {
			t.Fatalf("search-aggregation counts %+v before and %+v after, want one completed call; Redis was late for %d requests", before, after, late)
		}
		t.Logf("Redis was late for %d requests: the trial proves nothing", late)
	}
}

// countDegraded counts the requests so far for which Redis was late.
func countDegraded(t *testing.T, state string) (n int) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(state, "log", "search-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), `"session":"degraded"`)
	}
	return n
}

// The test kills the process that holds the lock of a list while search-aggregation hangs. Then
// search-aggregation responds at once, so that the process that takes over sends no hedge, and the
// number of completed calls is the number of processes that took over.
//
// The remaining time of the waiting requests depends on the load. A request without time left gets
// 504, and its repetition gets the list. The test requires a takeover among the waiting requests
// unless the leader died too late for it.
//
// A single takeover is guaranteed only while Redis responds in time and leases are renewed.
// Otherwise the test repeats the trial, at most three times.
func TestSearch_OneProcessTakesOverFromKilledLeader(t *testing.T) {
	const trials = 3
	for trial, shown := 0, false; trial < trials && !shown && !t.Failed(); trial++ {
		t.Run(fmt.Sprintf("trial %d", trial), func(t *testing.T) { shown = runTakeoverTrial(t, trial == trials-1) })
	}
}

// runTakeoverTrial reports whether the trial is conclusive. The last trial must be.
func runTakeoverTrial(t *testing.T, last bool) (shown bool) {
	state := servertest.StateDir(t)
	s := servertest.Start(t, state)
	processes := startProcesses(t, state, 4)
	worst := measureStarvation(t)
	setBehaviour(t, s, "search", `{"hang":true}`)
	before := waitForCounters(t, s, isIdle)
	done := make(chan []callerResult)
	began := time.Now()
	go func() { done <- runStampede(processes, callers, "Herat") }()
	killed := killLeader(t, s, state, processes)
	late := time.Since(began) > web.Budget-takeoverDelay
	dead := waitForCounters(t, s, func(a upstreamCounters) bool { return a.Calls > before.Calls && a.completed() == before.completed() })
	setBehaviour(t, s, "search", `{}`)
	answered, timedOut := 0, 0
	for _, o := range <-done {
		if o.process == killed { // the killed process cannot respond
			continue
		}
		if o.err == nil && o.status == http.StatusGatewayTimeout {
			timedOut++
			o = searchCity(http.DefaultClient, processes, o.process, "Herat")
		} else {
			answered++
		}
		if o.err != nil || o.status != http.StatusOK {
			t.Errorf("process %d: %d, %v", o.process, o.status, o.err)
		}
	}
	t.Logf("%d requests were answered, %d timed out", answered, timedOut)
	if answered == 0 && !late {
		t.Error("no waiting request took over from the leader")
	}
	checkLatencies(t, state, callers/4*3, worst())
	after := waitForCounters(t, s, isIdle)
	if after.completed()-before.completed() == 1 {
		return true
	}
	if late := countDegraded(t, state); last || late == 0 && worst() < leaseLossDelay {
		t.Errorf("search-aggregation counts %+v after the leader's death and %+v at the end, want one completed call; Redis was late for %d requests", dead, after, late)
		return true
	}
	t.Logf("search-aggregation counts %+v; the machine delayed goroutines by up to %s: the trial proves nothing", after, worst())
	return false
}

// leaseLossDelay is the delay after which a process loses its lease of one second (decision 3).
const leaseLossDelay = 750 * time.Millisecond

// takeoverDelay is the time that a lock outlives its owner, and the same again for the slowest
// waiting request to notice (decision 3).
const takeoverDelay = 2 * time.Second

// killLeader waits until a process holds the lock of a list and calls search-aggregation. It kills
// that process and returns its index.
func killLeader(t *testing.T, s *server.Server, state string, processes []*process) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ Env map[string]string }
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	waitForCounters(t, s, func(a upstreamCounters) bool { return a.InFlight > 0 })
	rdb := redis.NewClient(&redis.Options{Addr: run.Env["REDIS_ADDR"]})
	defer rdb.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for {
		locks, err := rdb.Keys(t.Context(), "*:lock:{*search:list*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range locks {
			token := rdb.Get(t.Context(), lock).Val() // bff-consumer-<pid>-…
			for i, p := range processes {
				if strings.Contains(token, "-"+strconv.Itoa(p.cmd.Process.Pid)+"-") {
					p.cmd.Process.Kill()
					p.cmd.Wait() // Cleanup calls Wait again, which returns an error at once
					return i
				}
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("no process holds the lock of a list after 10 s")
		}
	}
}
