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

// searchState is the environment variable that makes this test binary serve the search folder beside the
// development server with that state directory.
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
			t.Fatalf("process %d says %q: %v", i, line, err)
		}
		all[i] = &process{cmd, fields[1]}
	}
	return all
}

// callerResult is one caller's answer.
type callerResult struct {
	process, status int
	err             error
}

// runStampede lets callers ask for one city at once, spread over the processes.
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

// searchCity asks one process for a city.
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

// upstreamCounters is how often search-aggregation was called, and by how many of the callers it was left before it answered: by
// a process that died, and by the slower one of a call and its hedge. A hedge is the answer to 800 ms of silence,
// which a starved machine keeps as well as a sick upstream; it fetches nothing twice.
type upstreamCounters struct{ Calls, Abandoned, InFlight int }

// completed is how many calls were answered: one for each time that somebody led.
func (a upstreamCounters) completed() int { return a.Calls - a.Abandoned }

// waitForCounters is what GET /_local/upstreams says of search-aggregation once that is as a test needs it.
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
			t.Fatalf("search-aggregation was %+v", all["search"])
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

// measureStarvation begins to measure, and worst tells, for how long at most this machine kept somebody who could run waiting.
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

// checkLatencies fails for every answer of the processes that the function itself, by its log, took longer for than a request may
// take, and than the machine may have kept it waiting at the end of that. A caller's clock would have the queue of a
// thousand callers on two cores in it.
func checkLatencies(t *testing.T, state string, answers int, starved time.Duration) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(state, "log", "search-*.jsonl"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	records := 0
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
			if err != nil || took > web.Budget+starved {
				t.Errorf("an answer took %s, %v; nobody was kept waiting longer than %s", record.HTTPRequest.Latency, err, starved)
			}
		}
	}
	if records < answers {
		t.Errorf("the logs have %d of %d answers", records, answers)
	}
}

// What is shown holds while Redis answers in time. On a machine that has too much to do it may not: the functions say
// so in their records, and then another city is tried.
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
			t.Fatalf("search-aggregation was %+v before and %+v after; %d requests had no answer from Redis in time", before, after, late)
		}
		t.Logf("%d requests had no answer from Redis in time: this trial shows nothing", late)
	}
}

// countDegraded counts the requests so far to which Redis gave no answer in time.
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

// The leader is killed while search-aggregation is silent, which it is to nobody else: so those who take over neither
// hedge nor work for long, and what is counted is how many they are.
//
// How much of their time those who wait have left when the leader dies, and how fast they are told, is a matter of load:
// whose time is over gets a 504, and then the answer that is there by now. That one of them takes over is asked unless the
// leader died so late that nobody had the time to notice.
//
// That it is one holds while Redis answers in time and leases can be renewed; where neither was so, all is tried again.
func TestSearch_OneProcessTakesOverFromKilledLeader(t *testing.T) {
	const trials = 3
	for trial, shown := 0, false; trial < trials && !shown && !t.Failed(); trial++ {
		t.Run(fmt.Sprintf("trial %d", trial), func(t *testing.T) { shown = runTakeoverTrial(t, trial == trials-1) })
	}
}

// runTakeoverTrial is one trial; it reports that the trial has shown something, which the last one must.
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
	told, over := 0, 0
	for _, o := range <-done {
		if o.process == killed { // died with it, or found it gone
			continue
		}
		if o.err == nil && o.status == http.StatusGatewayTimeout {
			over++
			o = searchCity(http.DefaultClient, processes, o.process, "Herat")
		} else {
			told++
		}
		if o.err != nil || o.status != http.StatusOK {
			t.Errorf("process %d: %d, %v", o.process, o.status, o.err)
		}
	}
	t.Logf("%d were told, for %d the time was over", told, over)
	if told == 0 && !late {
		t.Error("nobody of those who waited took over")
	}
	checkLatencies(t, state, callers/4*3, worst())
	after := waitForCounters(t, s, isIdle)
	if after.completed()-before.completed() == 1 {
		return true
	}
	if late := countDegraded(t, state); last || late == 0 && worst() < leaseLossDelay {
		t.Errorf("search-aggregation was %+v when the leader had died, and %+v after; %d requests had no answer from Redis in time", dead, after, late)
		return true
	}
	t.Logf("search-aggregation was %+v; the machine kept somebody waiting for %s: this trial shows nothing", after, worst())
	return false
}

// leaseLossDelay is how long a process must be kept waiting to lose its lease of a second: decision 3.
const leaseLossDelay = 750 * time.Millisecond

// takeoverDelay is how long a lock outlives its owner, and as long again for the slowest of those who wait to notice: decision 3.
const takeoverDelay = 2 * time.Second

// killLeader waits until somebody holds the lock of a list and asks, and kills that process.
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
					p.cmd.Wait() // Cleanup waits again, for nothing
					return i
				}
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nobody leads")
		}
	}
}
