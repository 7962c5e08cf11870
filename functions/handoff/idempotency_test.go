package handoff

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestHandoffMintIdempotency_RetryReplaysSameBytes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	first := h.mustMint(h.requestBody(), guest...)
	before := h.Count("handoff_replay_log")
	for name, repeat := range map[string]func() *response{
		"at once":                  func() *response { return h.mustMint(h.requestBody(), guest...) },
		"with other white space":   func() *response { return h.mustMint(strings.ReplaceAll(h.requestBody(), `,"`, ", \n\""), guest...) },
		"under the alias":          func() *response { return h.mustMint(h.requestBody(), guest[0], guest[1], "X-Idempotency-Key", "k1") },
		"with both headers":        func() *response { return h.mustMint(h.requestBody(), append(guest, "X-Idempotency-Key", "k1")...) },
		"in another language":      func() *response { return h.mustMint(h.requestBody(), append(guest, "Accept-Language", "ar")...) },
		"after Redis was wiped":    func() *response { h.FlushRedis(); return h.mustMint(h.requestBody(), guest...) },
		"and once more after that": func() *response { return h.mustMint(h.requestBody(), guest...) },
	} {
		t.Run(name, func(t *testing.T) {
			a := repeat()
			if a.Text != first.Text || !a.replayed() || a.SessionCookie() != first.SessionCookie() {
				t.Errorf("got replayed %t, cookie %s, %s; want the answer %s", a.replayed(), a.SessionCookie(), a.Text, first.Text)
			}
		})
	}
	if n := h.Count("handoff_replay_log"); n != before {
		t.Errorf("got %d handoffs more; want 0", n-before)
	}
	if first.replayed() {
		t.Error("the first answer is marked as replayed")
	}
}

func TestHandoffMintIdempotency_RetryUsesNoPostgres(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	first := h.mustMint(h.requestBody(), guest...)
	h.Deps.DB.Close()
	if a := h.mustMint(h.requestBody(), guest...); a.Text != first.Text {
		t.Errorf("got %s; want body = %v", a.Text, first.Text)
	}
}

func TestHandoffMintIdempotency_RecordIsCachedAgainAfterRedisLoss(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	first := h.mustMint(h.requestBody(), guest...)
	h.FlushRedis()
	h.mustMint(h.requestBody(), guest...)
	h.Deps.DB.Close()
	if a := h.mustMint(h.requestBody(), guest...); a.Text != first.Text || !a.replayed() {
		t.Errorf("got %s; want body = %v, replayed", a.Text, first.Text)
	}
}

// A recorded answer is replayed even when a new request would be refused.
func TestHandoffMintIdempotency_RetryReplaysAfterStateChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*harness){
		"the tenant was suspended":   func(h *harness) { h.Suspend(tenantID(1)) },
		"the property is gone":       func(h *harness) { h.upstreams.NotFound(propertyID(1)) },
		"property-service went away": func(h *harness) { h.upstreams.Fail("property") },
		"midnight passed":            func(h *harness) { h.Advance(20 * time.Hour) },
		"the handoff expired":        func(h *harness) { h.Advance(time.Hour) },
		"several of these at once":   func(h *harness) { h.Suspend(tenantID(1)); h.Advance(20 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.Set(time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC))
			guest := h.guestHeaders("k1")
			body := h.requestBody(h.Now().AddDate(0, 0, 10).Format(time.DateOnly), h.Now().Format(time.DateOnly))
			first := h.mustMint(body, guest...)
			change(h)
			if a := h.post(body, guest...); a.Text != first.Text || !a.replayed() {
				t.Errorf("got %s; want the replayed answer %s", a.Text, first.Text)
			}
			h.FlushRedis()
			if a := h.post(body, guest...); a.Text != first.Text || !a.replayed() {
				t.Errorf("after a loss in Redis: got %s; want the replayed answer %s", a.Text, first.Text)
			}
		})
	}
}

func TestHandoffMintIdempotency_KeyReuseAnswers422(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	first := h.mustMint(h.requestBody(), guest...)
	for _, wiped := range []bool{false, true} {
		if wiped {
			h.FlushRedis()
		}
		for name, body := range map[string]string{
			"another party":    h.requestBody(`"adults":2`, `"adults":3`),
			"another currency": h.requestBodyWith(`"currency":"EUR"`),
			"another place":    h.requestBody(tenantID(1), tenantID(2), propertyID(1), propertyID(2)),
		} {
			a := h.post(body, guest...)
			if a.StatusCode != 422 || !strings.HasSuffix(a.Code, ".IDEMPOTENCY_KEY_REUSED") {
				t.Errorf("%s (Redis empty: %t): got %s; want 422 IDEMPOTENCY_KEY_REUSED", name, wiped, a.Text)
			}
		}
	}
	if a := h.mustMint(h.requestBody(), guest...); a.Text != first.Text {
		t.Errorf("first request repeated: got %s; want %s", a.Text, first.Text)
	}
}

func TestHandoffMintIdempotency_KeyIsScopedToGuest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	mine, theirs := h.guestHeaders("k1"), h.guestHeaders("k1")
	if a, b := h.mustMint(h.requestBody(), mine...), h.mustMint(h.requestBody(), theirs...); a.HandoffID == b.HandoffID || b.replayed() {
		t.Error("a guest got the handoff of another guest")
	}
}

func TestHandoffMintIdempotency_KeyIsRequired(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, c := range map[string]struct {
		headers []string
		code    string
	}{
		"none":          {nil, "IDEMPOTENCY_KEY_REQUIRED"},
		"two different": {[]string{"Idempotency-Key", "a", "X-Idempotency-Key", "b"}, "MALFORMED_REQUEST"},
		"too long":      {[]string{"Idempotency-Key", strings.Repeat("k", 256)}, "MALFORMED_REQUEST"},
		"not printable": {[]string{"Idempotency-Key", "k\x01"}, "MALFORMED_REQUEST"},
		"not ASCII":     {[]string{"Idempotency-Key", "ключ"}, "MALFORMED_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.post(h.requestBody(), c.headers...)
			if a.StatusCode != 400 || !strings.HasSuffix(a.Code, "."+c.code) {
				t.Errorf("got %s; want status 400, code ending with %v", a.Text, "."+c.code)
			}
		})
	}
	h.mustMint(h.requestBody(), "Idempotency-Key", strings.Repeat("k", 255))
}

func TestHandoffMintIdempotency_FailureIsNotStored(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	h.upstreams.NotFound(propertyID(2))
	body := h.requestBody(tenantID(1), tenantID(2), propertyID(1), propertyID(2))
	if a := h.post(body, guest...); a.StatusCode != 404 {
		t.Fatalf("got %s; want status 404", a.Text)
	}
	h.upstreams.Recover(propertyID(2))
	h.Advance(time.Minute)
	if a := h.mustMint(body, guest...); a.replayed() {
		t.Errorf("got %s; want not replayed", a.Text)
	}
}

func TestHandoffMintIdempotency_KeyExpiresAfterOneDay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	body := h.requestBody()
	first := h.mustMint(body, guest...)
	h.Advance(25 * time.Hour)
	h.FlushRedis() // Redis expires keys by its own clock, which the test cannot advance
	if a := h.mustMint(body, guest...); a.replayed() || a.HandoffID == first.HandoffID {
		t.Errorf("got %s; want not replayed, HandoffID != %v", a.Text, first.HandoffID)
	}
	if n := h.Count("idempotency_keys"); n != 2 {
		t.Errorf("got %d records; want 2", n)
	}
}

func TestHandoffMintIdempotency_ConcurrentRequestsMintOnce(t *testing.T) {
	t.Parallel()
	for _, withRedis := range []bool{true, false} {
		t.Run(fmt.Sprintf("with Redis %t", withRedis), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			guest := h.guestHeaders("k1")
			before := h.Count("handoff_replay_log")
			if !withRedis {
				h.Redis.Stop()
			}
			h.postConcurrently(guest, 10)
			if n := h.Count("handoff_replay_log"); n != before+1 {
				t.Errorf("got %d handoffs; want 1", n-before)
			}
		})
	}
}

// postWithRetry repeats the request until the answer is not retriable. Answers are retriable while
// the first request runs, and on a busy machine when a store misses its timeout.
func (h *harness) postWithRetry(headers ...string) *response {
	a := h.post(h.requestBody(), headers...)
	for a.Retriable {
		a = h.post(h.requestBody(), headers...)
	}
	return a
}

// postConcurrently sends n requests at once, with retries, and returns the answer. It fails the
// test unless all answers are the same and at most one is not replayed.
func (h *harness) postConcurrently(guest []string, n int) string {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		texts = map[string]int{}
		start = make(chan struct{})
		fresh atomic.Int64
	)
	for range n {
		all.Go(func() {
			<-start
			a := h.postWithRetry(guest...)
			if a.StatusCode != http.StatusCreated {
				h.T.Errorf("got %d %s; want status %v", a.StatusCode, a.Text, http.StatusCreated)
			}
			if !a.replayed() {
				fresh.Add(1)
			}
			mu.Lock()
			texts[a.Text]++
			mu.Unlock()
		})
	}
	close(start)
	all.Wait()
	// fresh is 0 when the first answer was a timeout after the commit
	if len(texts) != 1 || fresh.Load() > 1 {
		h.T.Errorf("got %d different answers, %d of them not replayed; want 1, at most 1", len(texts), fresh.Load())
	}
	for text := range texts {
		return text
	}
	return ""
}

// Eight workers send ten requests for each key, and Redis loses all data half-way.
func TestHandoffMintIdempotency_OneTokenPerKeyDespiteRedisLoss(t *testing.T) {
	t.Parallel()
	keys := 500
	if testing.Short() {
		keys = 50
	}
	h := newHarness(t)
	cookie := h.guestHeaders("")[1]
	before := h.Count("handoff_replay_log")
	var (
		started, done atomic.Int64
		mu            sync.Mutex
		answers       = map[string]string{}
		work          = make(chan string)
		all           sync.WaitGroup
	)
	for range 8 {
		all.Go(func() {
			for key := range work {
				if started.Add(1) == int64(keys/2) {
					h.FlushRedis() // while the other workers have requests in progress
				}
				text := h.postConcurrently([]string{"Cookie", cookie, "Idempotency-Key", key}, 10)
				mu.Lock()
				answers[key] = text
				mu.Unlock()
				done.Add(1)
			}
		})
	}
	for n := range keys {
		work <- fmt.Sprintf("key-%d", n)
	}
	close(work)
	all.Wait()
	h.FlushRedis()
	ids := map[string]bool{}
	for key, text := range answers {
		a := h.postWithRetry("Cookie", cookie, "Idempotency-Key", key)
		if a.Text != text || !a.replayed() {
			t.Fatalf("%s repeated: got\n%s\nwant\n%s", key, a.Text, text)
		}
		ids[a.HandoffID] = id.Valid(id.Handoff, a.HandoffID)
	}
	if n := h.Count("handoff_replay_log") - before; n != keys || len(ids) != keys {
		t.Errorf("got %d handoffs and %d tokens; want %d", n, len(ids), keys)
	}
	if n := len(h.Messages(initiatedSubject)); n != keys+before {
		t.Errorf("got %d events; want %d", n, keys+before)
	}
}

// Statements are prepared by name, and a migration changes the tables afterwards. Statements that
// only write must never fail for that.
func TestHandoffMint_SurvivesSchemaMigration(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.guestHeaders("")[1]
	for n, step := range []string{
		"SELECT", // no change
		"ALTER TABLE bff_consumer.handoff_replay_log ADD COLUMN pets smallint NOT NULL DEFAULT 0",
		"ALTER TABLE bff_consumer.handoff_replay_log ALTER COLUMN adults TYPE integer",
		"ALTER TABLE bff_consumer.idempotency_keys ADD COLUMN region text, ALTER COLUMN response_status TYPE integer",
		"CREATE INDEX ON bff_consumer.outbox (topic)",
		"ALTER TABLE bff_consumer.outbox ADD CHECK (attempts >= 0)",
		"ALTER TABLE bff_consumer.session_choice ADD COLUMN region text",
	} {
		if _, err := h.Deps.DB.Exec(context.Background(), step); err != nil {
			t.Fatal(err)
		}
		for again := range 2 {
			key := fmt.Sprintf("step-%d-%d", n, again)
			a := h.mustMint(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
			h.FlushRedis()
			b := h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
			for b.Retriable { // a read of a column with a new type fails once on each connection
				b = h.post(h.requestBody(), "Cookie", cookie, "Idempotency-Key", key)
			}
			if b.Text != a.Text || !b.replayed() {
				t.Errorf("after %s: got %s; want the recorded answer %s", step, b.Text, a.Text)
			}
		}
	}
}
