package consume

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestConsume_ReplayEventNamesProducerInstance(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.mint()
	h.postConsume(m, "tenant-1")
	h.postConsume(m, "tenant-2")
	from := queryValue[string](h, `SELECT payload #>> '{envelope,producerInstance}' FROM bff_consumer.outbox WHERE topic = $1`, botSuspectedSubject)
	if !strings.Contains(from, fmt.Sprintf("-%d-", os.Getpid())) {
		t.Errorf("got producerInstance %q; want one with this process id", from)
	}
}
