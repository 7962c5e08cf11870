package consume

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestAReportNamesTheProcessItComesFrom(t *testing.T) {
	h := newHouse(t)
	m := h.mint()
	h.use(m, "tenant-1")
	h.use(m, "tenant-2")
	from := read[string](h, `SELECT payload #>> '{envelope,producerInstance}' FROM bff_consumer.outbox WHERE topic = $1`, suspected)
	if !strings.Contains(from, fmt.Sprintf("-%d-", os.Getpid())) {
		t.Errorf("it comes from %q", from)
	}
}
