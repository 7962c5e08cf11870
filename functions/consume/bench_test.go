package consume

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

const clientsPerCore = 16

// BenchmarkConsume measures the whole pipeline and, for comparison, the update of one row by its
// key alone. Run both together and compare the ratio.
func BenchmarkConsume(b *testing.B) {
	h := newHarness(b)
	cfg, err := pgxpool.ParseConfig(h.Database)
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = 2 * clientsPerCore
	h.consume.db.Close()
	if h.consume.db, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		b.Fatal(err)
	}
	bearer := "Bearer " + h.issuer.Token(audience, callerAccount, h.Now())
	b.Run("consume", func(b *testing.B) {
		h.runParallel(b, func(m mintedHandoff) bool {
			r := httptest.NewRequest("POST", "/internal/handoff/"+m.id+"/consume", strings.NewReader(fmt.Sprintf(`{"token":%q,"consumedBy":"tenant-1"}`, m.token)))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {bearer}, "Idempotency-Key": {m.id}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code == http.StatusOK
		})
	})
	b.Run("update alone", func(b *testing.B) {
		h.runParallel(b, func(m mintedHandoff) bool {
			tag, err := h.consume.db.Exec(context.Background(), `
				UPDATE bff_consumer.handoff_replay_log
				SET consumed = true, consumed_at = now(), consumed_by = 'tenant-1'
				WHERE id = $1::text AND NOT consumed`, m.id)
			return err == nil && tag.RowsAffected() == 1
		})
	})
}

// runParallel mints a handoff for each run of op before the timer starts, and runs op by many
// clients.
func (h *harness) runParallel(b *testing.B, op func(mintedHandoff) bool) {
	out := make([]mintedHandoff, b.N)
	for i := range out {
		out[i] = h.mint()
	}
	var next atomic.Int64
	b.SetParallelism(clientsPerCore)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !op(out[next.Add(1)-1]) {
				b.Error("failed")
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}
