package consume

import (
	"fmt"
	"sync"
	"testing"
)

// Twenty callers consume each handoff at once. On a busy machine the deciding statement may time
// out after it committed; then the caller repeats the call. A report may be written twice then, but
// never more often than the calls.
func TestConsume_OneOfManyConcurrentCallersSucceeds(t *testing.T) {
	t.Parallel()
	handoffs := 200
	if testing.Short() {
		handoffs = 20
	}
	h := newHarness(t)
	refused, retries := 0, 0
	for range handoffs {
		m := h.mint()
		answers, more := h.consumeConcurrently(m, func(n int) string { return fmt.Sprintf("tenant-%d", n) })
		retries += more
		consumed := 0
		for _, a := range answers {
			switch {
			case a.hasStatus(200, ""):
				consumed++
			case a.hasStatus(409, "HANDOFF_REPLAYED"):
				refused++
			default:
				t.Errorf("got %s; want 200 or 409 HANDOFF_REPLAYED", a.Text)
			}
		}
		if consumed != 1 {
			t.Errorf("got %d successful callers; want 1", consumed)
		}
	}
	events, verdicts := h.countReports()
	if want := handoffs * 19; refused != want || events != verdicts || events < want || events > want+retries {
		t.Errorf("got %d refused, %d events, %d verdicts; want %d of each, after %d retries", refused, events, verdicts, want, retries)
	}
}

func TestConsume_ConcurrentRetriesGetSameResponse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	answers, _ := h.consumeConcurrently(h.mint(), func(int) string { return "tenant-1" })
	for _, a := range answers {
		if !a.hasStatus(200, "") || a.Text != answers[0].Text {
			t.Errorf("got %s; want 200, body = %v", a.Text, answers[0].Text)
		}
	}
}

// consumeConcurrently consumes m twenty times at once, with one key. Then it repeats the calls that
// got a retriable 503, one after the other, up to 20 times each; retries counts the repetitions.
func (h *harness) consumeConcurrently(m mintedHandoff, by func(n int) string) (answers []*response, retries int) {
	h.T.Helper()
	answers = make([]*response, 20)
	call := func(n int) { answers[n] = h.postConsume(m, by(n), "Idempotency-Key", "k1") }
	h.runConcurrently(len(answers), call)
	for n := range answers {
		for tries := 0; tries < 20 && answers[n].hasStatus(503, "UPSTREAM_UNAVAILABLE") && answers[n].Header.Get("Retry-After") != ""; tries++ {
			retries++
			call(n)
		}
	}
	return answers, retries
}

// runConcurrently calls do(0) to do(n-1) at once and waits for all calls.
func (h *harness) runConcurrently(n int, do func(int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}
