package consume

import (
	"fmt"
	"sync"
	"testing"
)

// 200 handoffs, each used by twenty at once. On a machine that has too much to do the statement that decides may be out of
// time: then nobody knows whether it has decided, the caller included, who asks again. A report may so be written twice,
// but never more often than somebody asked.
func TestConsume_OneOfManyConcurrentCallersSucceeds(t *testing.T) {
	t.Parallel()
	handoffs := 200
	if testing.Short() {
		handoffs = 20
	}
	h := newHarness(t)
	refused, again := 0, 0
	for range handoffs {
		m := h.mint()
		answers, more := h.consumeConcurrently(m, func(n int) string { return fmt.Sprintf("tenant-%d", n) })
		again += more
		used := 0
		for _, a := range answers {
			switch {
			case a.hasStatus(200, ""):
				used++
			case a.hasStatus(409, "HANDOFF_REPLAYED"):
				refused++
			default:
				t.Errorf("got %s; want 200 or 409 HANDOFF_REPLAYED", a.Text)
			}
		}
		if used != 1 {
			t.Errorf("%d used one handoff", used)
		}
	}
	events, verdicts := h.countReports()
	if want := handoffs * 19; refused != want || events != verdicts || events < want || events > want+again {
		t.Errorf("%d refused, %d events, %d verdicts, want %d; %d times somebody had to ask again", refused, events, verdicts, want, again)
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

// consumeConcurrently use m at once, all with one key. Those who are told to come back do so one after the other, when the rest is
// through, until it is decided; again is how often that was.
func (h *harness) consumeConcurrently(m mintedHandoff, by func(n int) string) (answers []*response, again int) {
	h.T.Helper()
	answers = make([]*response, 20)
	use := func(n int) { answers[n] = h.postConsume(m, by(n), "Idempotency-Key", "k1") }
	h.runConcurrently(len(answers), use)
	for n := range answers {
		for tries := 0; tries < 20 && answers[n].hasStatus(503, "UPSTREAM_UNAVAILABLE") && answers[n].Header.Get("Retry-After") != ""; tries++ {
			again++
			use(n)
		}
	}
	return answers, again
}

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
