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

// TestHandoffMintCrash_ChildProcess is the process that TestHandoffMintCrash_KilledMintIsAtomic
// starts. It mints once and kills itself with SIGKILL before step CRASH_AT of its conversation with
// Postgres. It exits with 0 when the conversation has fewer steps.
func TestHandoffMintCrash_ChildProcess(t *testing.T) {
	t.Parallel()
	at, err := strconv.ParseInt(os.Getenv("CRASH_AT"), 10, 64)
	if err != nil {
		t.Skip("started by another test")
	}
	deps, err := wiring.New(context.Background(), functest.Environment(t, os.Getenv("CRASH_DB"), os.Getenv("CRASH_REDIS"), os.Getenv("CRASH_UPSTREAM")), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	var step atomic.Int64
	deps.DB = tracedPool(t, deps.DB, "minter", func(name string) {
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
	functest.NewHandler(t, pattern, New(deps, parseKeys(t, activeKey), handoff.Link{}).Serve, io.Discard).ServeHTTP(w, r)
	if w.Code != 201 {
		t.Fatalf("got %d %s; want status 201", w.Code, w.Body)
	}
}

// rowCounts holds the row counts of three tables. A mint adds one row to each table or to none.
type rowCounts struct{ handoffs, records, events int }

func (h *harness) countRows() rowCounts {
	return rowCounts{h.Count("handoff_replay_log"), h.Count("idempotency_keys"), len(h.Messages(initiatedSubject))}
}

func TestHandoffMintCrash_KilledMintIsAtomic(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.guestHeaders("")[1]
	temp := t.TempDir() // a killed process does not remove its files
	var committed, notCommitted int
	for at := 1; ; at++ {
		key := fmt.Sprintf("killed-%d", at)
		before := h.countRows()
		minter := exec.Command(os.Args[0], "-test.run=^TestHandoffMintCrash_ChildProcess$")
		minter.Env = append(os.Environ(), "TMPDIR="+temp, "CRASH_AT="+strconv.Itoa(at), "CRASH_DB="+h.Database, "CRASH_REDIS="+h.Redis.Addr, "CRASH_UPSTREAM="+h.upstreams.URL,
			"CRASH_COOKIE="+cookie, "CRASH_KEY="+key, "CRASH_BODY="+h.requestBody())
		out, err := minter.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "killed before") {
			t.Fatalf("step %d: got error %v; want the process killed\n%s", at, err, out)
		}
		h.waitForDisconnect()
		after := h.countRows()
		switch (rowCounts{after.handoffs - before.handoffs, after.records - before.records, after.events - before.events}) {
		case rowCounts{0, 0, 0}:
			notCommitted++
		case rowCounts{1, 1, 1}:
			committed++
		default:
			t.Errorf("step %d, %s: got %+v after %+v; want one row more in each table or none", at, strings.TrimSpace(string(out)), after, before)
		}
		if at%8 != 0 { // every 8th step waits until the claim of the killed process expires, 2.5 s
			h.FlushRedis()
		}
		a := h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
		for a.StatusCode == 409 {
			a = h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
		}
		if a.StatusCode != 201 || a.replayed() != (after != before) {
			t.Errorf("step %d: repetition: got %d, replayed %t, %s; want 201, replayed %t", at, a.StatusCode, a.replayed(), a.Text, after != before)
		}
		if got := h.countRows(); got != (rowCounts{before.handoffs + 1, before.records + 1, before.events + 1}) {
			t.Errorf("step %d: after the repetition: got %+v after %+v; want one row more in each table", at, got, before)
		}
		if err == nil {
			break // the conversation has no such step
		}
	}
	t.Logf("killed %d times before the commit, %d times after the commit", notCommitted, committed)
	if notCommitted < 10 || committed < 2 {
		t.Errorf("got %d kills before the commit and %d after; want at least 10 and 2", notCommitted, committed)
	}
}

// waitForDisconnect waits until Postgres has closed the connection of the killed process, which may
// still process its last messages.
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
			h.T.Fatal("Postgres did not close the connection of the killed process within 15 s")
		}
	}
}
