package handoff

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// newHarnessWithFlags is newHarness with a flags document.
func newHarnessWithFlags(t *testing.T, flags string) *harness {
	h := &harness{Harness: functest.New(t)}
	h.upstreams = newUpstreams(t)
	e := functest.Environment(t, h.Database, h.Redis.Addr, h.upstreams.URL)
	if err := os.WriteFile(e.FlagsFile, []byte(flags), 0o600); err != nil {
		t.Fatal(err)
	}
	h.open(e)
	return h
}

// serial: a token returns after 15 s of real time
func TestHandoffMint_RateLimitedRequestLeavesNoClaim(t *testing.T) {
	h := newHarnessWithFlags(t, `{"botMode":"off","limits":{"handoff":{"cookie":4,"ip":1000,"fingerprint":1000}}}`)
	guest := h.guestHeaders("first")
	h.mustMint(h.requestBody(), guest...)
	claims := func() string { return fmt.Sprint(h.RDB.Keys(t.Context(), "*:idem:*").Val()) }
	before, calls := claims(), h.upstreams.Calls()
	guest[3] = "second"
	for range 2 {
		a := h.post(h.requestBody(), guest...)
		if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Header.Get("RateLimit"), `"handoff-cookie";r=0;`) {
			t.Fatalf(`got %d %v %s; want status 429, non-empty Retry-After, RateLimit beginning with "handoff-cookie";r=0;`, a.StatusCode, a.Header, a.Text)
		}
	}
	if after := claims(); after != before {
		t.Errorf("got idempotency keys %s; want %s", after, before)
	}
	if h.Count("handoff_replay_log") != 2 || h.upstreams.Calls() != calls {
		t.Errorf("got %d handoffs, %d upstream calls; want 2 and 0", h.Count("handoff_replay_log"), h.upstreams.Calls()-calls)
	}
}

// browserHeaders are the headers of a browser besides its User-Agent.
var browserHeaders = []string{"Accept", "*/*", "Accept-Language", "fa-AF"}

// A guest clicks several times, and the page sends the same key each time. The flags are the
// defaults.
func TestHandoffMint_ConcurrentRetriesAreNotRateLimited(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, `{}`)
	guest := append(h.mustMint(h.requestBody(), append(browserHeaders, "Idempotency-Key", "first")...).guestHeaders("k1"), browserHeaders...)
	before := h.Count("handoff_replay_log")
	var wg sync.WaitGroup
	answers := make([]*response, 10)
	for n := range answers {
		wg.Go(func() { answers[n] = h.post(h.requestBody(), guest...) })
	}
	wg.Wait()
	minted := ""
	for _, a := range answers {
		switch {
		case a.StatusCode == 409 && strings.HasSuffix(a.Code, ".IDEMPOTENCY_IN_PROGRESS"):
		case a.StatusCode != 201 || minted != "" && a.Text != minted:
			t.Errorf("got %d %s; want status 201", a.StatusCode, a.Text)
		default:
			minted = a.Text
		}
	}
	if n := h.Count("handoff_replay_log") - before; n != 1 {
		t.Errorf("got %d handoffs; want 1", n)
	}
}

// guestHeaders returns the cookie of an answer and an Idempotency-Key as headers.
func (a *response) guestHeaders(key string) []string {
	return []string{"Cookie", "gms_id=" + a.SessionCookie(), "Idempotency-Key", key}
}

func TestHandoffMint_RetryIsChargedAsRead(t *testing.T) { // serial: a token returns after 7.5 s of real time
	h := newHarnessWithFlags(t, `{"botMode":"off","limits":{"handoff":{"cookie":8,"ip":1000,"fingerprint":1000},"read":{"cookie":12,"ip":1000,"fingerprint":1000}}}`)
	guest := h.guestHeaders("k1")
	first := h.mustMint(h.requestBody(), guest...) // 1 of a burst of 2; a token returns after 7.5 s
	left := func(a *response, want string) {
		t.Helper()
		if got := a.Header.Get("RateLimit"); !strings.HasPrefix(got, want) {
			t.Errorf("RateLimit: got %s; want %s", got, want)
		}
	}
	left(first, `"handoff-cookie";r=1;`)
	for n := range 3 {
		h.RoundTrips.TakeCount()
		a := h.mustMint(h.requestBody(), guest...)
		// the first may load a script
		if trips := h.RoundTrips.TakeCount(); trips > 3 || n > 0 && trips != 2 || a.Text != first.Text {
			t.Errorf("got %d round trips: %s; want 2 with the first answer", trips, a.Text)
		}
		left(a, fmt.Sprintf(`"read-cookie";r=%d;`, 2-n))
	}
	a := h.post(h.requestBody(), guest...)
	if a.StatusCode != 429 {
		t.Errorf("fourth repetition: got %d; want 429", a.StatusCode)
	}
	left(a, `"read-cookie";r=0;`)
	// the repetitions spent no handoff token
	left(h.mustMint(h.requestBody(), guest[0], guest[1], "Idempotency-Key", "k2"), `"handoff-cookie";r=0;`)
	if a := h.post(h.requestBody(), guest[0], guest[1], "Idempotency-Key", "k3"); a.StatusCode != 429 {
		t.Errorf("third key: got %d; want 429", a.StatusCode)
	}
}

// A cookie from another browser gets another session, for which the key is new.
// serial: a token returns after 7.5 s of real time
func TestHandoffMint_KeyFromAnotherBrowserIsNotRetry(t *testing.T) {
	h := newHarnessWithFlags(t, `{"botMode":"off","limits":{"handoff":{"cookie":8,"ip":1000,"fingerprint":1000}}}`)
	guest := h.guestHeaders("k1")
	h.mustMint(h.requestBody(), guest...)
	guest = append(guest, "User-Agent", functest.IPhone)
	h.mustMint(h.requestBody(), guest...)
	if a := h.post(h.requestBody(), guest...); a.StatusCode != 429 || h.Count("handoff_replay_log") != 3 {
		t.Errorf("got %d, %d handoffs; want 429 and 3", a.StatusCode, h.Count("handoff_replay_log"))
	}
}

// Of several requests at once with a new key the first is refused and releases its claim. The
// others must not mint for the price of a read.
func TestHandoffMint_RetriesOfRateLimitedRequestAreLimited(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, `{"botMode":"off","limits":{"handoff":{"cookie":4,"ip":1000,"fingerprint":1000},"read":{"cookie":100000,"ip":100000,"fingerprint":100000}}}`)
	guest := h.guestHeaders("first")
	h.mustMint(h.requestBody(), guest...)
	began, before, refused := time.Now(), h.Count("handoff_replay_log"), atomic.Int64{}
	for n := range 10 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if h.post(h.requestBody(), guest[0], guest[1], "Idempotency-Key", fmt.Sprint(n)).StatusCode == 429 {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
	}
	returned := int(time.Since(began)/(15*time.Second)) + 1 // a token returns every 15 s
	if n := h.Count("handoff_replay_log") - before; n > returned || refused.Load() < int64(40-4*returned) {
		t.Errorf("got %d minted and %d refused; want at most %d minted", n, refused.Load(), returned)
	}
	left := h.Do("POST", "/handoff", "", h.requestBody(), guest[0], guest[1], "Idempotency-Key", "first")
	if left.StatusCode != 201 || left.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf(`got %d %s; want status 201, Idempotency-Replayed = "true"`, left.StatusCode, left.Text)
	}
}
