package wishlist

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// BenchmarkStoreAdd measures an addition in Postgres, and for comparison a bare transaction with
// the same two inserts: no lock, no limit, no deduplication, no consent.
func BenchmarkStoreAdd(b *testing.B) {
	for _, clients := range []int{1, 8} {
		name := map[int]string{1: "1 client", 8: "8 clients"}[clients]
		b.Run("add/"+name, func(b *testing.B) {
			h := newHarness(b)
			runParallel(b, clients, func(ctx context.Context) error {
				w := newAddRequest(1)
				session := id.New(id.Session, noon)
				e := h.addedEvent(w)
				e.SessionID = session
				_, err := h.Add(ctx, session, w, e)
				return err
			})
		})
		b.Run("bare/"+name, func(b *testing.B) {
			h := newHarness(b)
			runParallel(b, clients, func(ctx context.Context) error {
				w := newAddRequest(1)
				session := id.New(id.Session, noon)
				e := h.addedEvent(w)
				e.SessionID = session
				row, err := outbox.Encode(e)
				if err != nil {
					return err
				}
				tenant, _ := id.UUID(id.Tenant, w.TenantID)
				property, _ := id.UUID(id.Property, w.PropertyID)
				var batch pgx.Batch
				batch.Queue(`
					INSERT INTO bff_consumer.wishlist_anonymous (id, guest_session_id, tenant_id, property_id, source, added_at)
					VALUES ($1, $2, $3, $4, $5, $6)`, id.New(id.Wishlist, noon), session, tenant, property, w.Source, noon)
				batch.Queue(`
					INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
					VALUES ($1, $2, $3, $4, $5)`, row.ID, row.Topic, string(row.Payload), string(row.Headers), row.RetentionClass)
				return h.db.SendBatch(ctx, &batch).Close()
			})
		})
	}
}

// runParallel runs work b.N times, spread over clients, and reports transactions per second.
func runParallel(b *testing.B, clients int, work func(context.Context) error) {
	b.Helper()
	ctx := b.Context()
	if err := work(ctx); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	done := make(chan error, clients)
	for range clients {
		go func() {
			var err error
			for err == nil && left.Add(-1) >= 0 {
				err = work(ctx)
			}
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}
