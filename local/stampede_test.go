package main

import (
	"bufio"
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
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/local/system"
)

// process is this program run again, serving search beside the system of the test.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcesses(t *testing.T, state string, n int) []*process {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "local")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := make([]*process, n)
	for i := range all {
		cmd := exec.Command(bin, "run", "--root", "..", "--state", state, "--only", "search", "--port", "0")
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

// outcome is one caller's answer.
type outcome struct {
	process, status int
	took            time.Duration
	err             error
}

// stampede lets callers ask for one city at once, spread over the processes.
func stampede(processes []*process, callers int, city string) []outcome {
	in := time.Now().UTC().AddDate(0, 0, 9)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 2).Format(time.DateOnly))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	outcomes := make([]outcome, callers)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() {
			o := &outcomes[i]
			o.process = i % len(processes)
			began := time.Now()
			res, err := client.Post(processes[o.process].url+"/bff/consumer/v1/search", "application/json", strings.NewReader(body))
			if err == nil {
				o.status = res.StatusCode
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			o.took, o.err = time.Since(began), err
		})
	}
	all.Wait()
	return outcomes
}

// searchCalls is what GET /_local/upstreams says of search-aggregation.
func searchCalls(t *testing.T, s *system.System) int {
	t.Helper()
	res, err := http.Get(s.URL + "/_local/upstreams")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all map[string]struct{ Calls int }
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all["search"].Calls
}

func behave(t *testing.T, s *system.System, upstream, behaviour string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPut, s.URL+"/_local/upstreams/"+upstream, strings.NewReader(behaviour))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
}

const (
	callers = 1000
	// The answer's budget is 2.5 s from when the function reads the request. On a small machine a thousand callers
	// and four processes share the cores with the test, so a caller's clock has waiting in it that is not the function's.
	budget = 2500 * time.Millisecond
	queue  = 2500 * time.Millisecond
)

func TestAThousandCallersOfFourProcessesAskTheUpstreamOnce(t *testing.T) {
	state := stateDir(t)
	s := start(t, state)
	processes := startProcesses(t, state, 4)
	behave(t, s, "search", `{"latencyMs":200}`)
	before := searchCalls(t, s)
	for _, o := range stampede(processes, callers, "Herat") {
		if o.err != nil || o.status != http.StatusOK || o.took > budget+queue {
			t.Errorf("process %d: %d after %s, %v", o.process, o.status, o.took, o.err)
		}
	}
	if n := searchCalls(t, s) - before; n != 1 {
		t.Errorf("search-aggregation was asked %d times", n)
	}
}

func TestWhenTheLeaderIsKilledOneOtherTakesOver(t *testing.T) {
	state := stateDir(t)
	s := start(t, state)
	processes := startProcesses(t, state, 4)
	behave(t, s, "search", `{"latencyMs":600}`)
	before := searchCalls(t, s)
	done := make(chan []outcome)
	go func() { done <- stampede(processes, callers, "Herat") }()
	killed := killLeader(t, state, processes)
	for _, o := range <-done {
		switch {
		case o.process == killed: // died with it, or found it gone
		case o.err != nil || o.status != http.StatusOK || o.took > budget+queue:
			t.Errorf("process %d: %d after %s, %v", o.process, o.status, o.took, o.err)
		}
	}
	if n := searchCalls(t, s) - before; n > 2 {
		t.Errorf("search-aggregation was asked %d times", n)
	}
}

// killLeader waits until somebody holds the lock of a list, and kills that process.
func killLeader(t *testing.T, state string, processes []*process) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ Env map[string]string }
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
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
