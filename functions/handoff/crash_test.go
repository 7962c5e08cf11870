package handoff

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// TestHandoffMintCrash_ChildProcess is not a test of its own: it is the process that the test below starts. It mints once and kills itself, with
// SIGKILL, before step CRASH_AT of its talk with Postgres; it exits 0 when there is no such step.
func TestHandoffMintCrash_ChildProcess(t *testing.T) {
	t.Parallel()
	at, err := strconv.ParseInt(os.Getenv("CRASH_AT"), 10, 64)
	if err != nil {
		t.Skip("started by another test")
	}
	parts, err := wiring.New(context.Background(), functest.Environment(t, os.Getenv("CRASH_DB"), os.Getenv("CRASH_REDIS"), os.Getenv("CRASH_UPSTREAM")), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	var step atomic.Int64
	parts.DB = tracedPool(t, parts.DB, "minter", func(name string) {
		if step.Add(1) == at {
			fmt.Printf("killed before: %s\n", name)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	r := httptest.NewRequest("POST", web.BasePath+"/handoff", strings.NewReader(os.Getenv("CRASH_BODY")))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": functest.Firefox, "Cookie": os.Getenv("CRASH_COOKIE"), "Idempotency-Key": os.Getenv("CRASH_KEY"),
	} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	functest.NewHandler(t, pattern, New(parts, parseKeys(t, activeKey), handoff.Link{}).Serve, io.Discard).ServeHTTP(w, r)
	if w.Code != 201 {
		t.Fatalf("got %d %s; want status 201", w.Code, w.Body)
	}
}

// rowCounts is how many rows each table has; a mint adds one to each, or to none.
type rowCounts struct{ handoffs, records, events int }

func (h *harness) countRows() rowCounts {
	return rowCounts{h.Count("handoff_replay_log"), h.Count("idempotency_keys"), len(h.Messages(initiatedSubject))}
}

func TestHandoffMintCrash_KilledMintIsAtomic(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.guestHeaders("")[1]
	temp := t.TempDir() // who is killed cannot tidy up
	var happened, not int
	for at := 1; ; at++ {
		key := fmt.Sprintf("killed-%d", at)
		before := h.countRows()
		minter := exec.Command(os.Args[0], "-test.run=^TestHandoffMintCrash_ChildProcess$")
		minter.Env = append(os.Environ(), "TMPDIR="+temp, "CRASH_AT="+strconv.Itoa(at), "CRASH_DB="+h.Database, "CRASH_REDIS="+h.Redis.Addr, "CRASH_UPSTREAM="+h.upstreams.URL,
			"CRASH_COOKIE="+cookie, "CRASH_KEY="+key, "CRASH_BODY="+h.requestBody())
		out, err := minter.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "killed before") {
			t.Fatalf("step %d: %v\n%s", at, err, out)
		}
		h.waitForDisconnect()
		after := h.countRows()
		switch (rowCounts{after.handoffs - before.handoffs, after.records - before.records, after.events - before.events}) {
		case rowCounts{0, 0, 0}:
			not++
		case rowCounts{1, 1, 1}:
			happened++
		default:
			t.Errorf("step %d, %s: %+v became %+v", at, strings.TrimSpace(string(out)), before, after)
		}
		if at%8 != 0 { // now and then the claim of the dead is waited for; else the test would last minutes
			h.FlushRedis()
		}
		a := h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
		for a.StatusCode == 409 {
			a = h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
		}
		if a.StatusCode != 201 || a.replayed() != (after != before) {
			t.Errorf("step %d: asked again: %d, replayed %t, %s", at, a.StatusCode, a.replayed(), a.Text)
		}
		if got := h.countRows(); got != (rowCounts{before.handoffs + 1, before.records + 1, before.events + 1}) {
			t.Errorf("step %d: asked again: %+v became %+v", at, before, got)
		}
		if err == nil {
			break // it lived
		}
	}
	t.Logf("killed %d times before the commit, %d times after it", not, happened)
	if not < 10 || happened < 2 {
		t.Errorf("killed %d times before the commit and %d times after it: not every step was tried", not, happened)
	}
}

// waitForDisconnect waits until Postgres has done with the dead process: its last messages may still be under way.
func (h *harness) waitForDisconnect() {
	h.T.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var others int
		err := h.DB.QueryRow(context.Background(), `
			SELECT count(*)
			FROM pg_stat_activity
			WHERE datname = current_database()
			  AND application_name = 'minter'`).Scan(&others)
		if err != nil {
			h.T.Fatal(err)
		}
		if others == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.T.Fatal("the connection of a dead process stays")
		}
	}
}
