package handoff

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const clientsPerCore = 16

// BenchmarkHandoffMint measures a mint and a repetition through the whole pipeline and, for
// comparison, the three inserts of a mint alone: pipelined as the mint sends them, and one after
// the other. Run all together and compare the ratios.
func BenchmarkHandoffMint(b *testing.B) {
	h := &harness{Harness: functest.New(b), upstreams: newUpstreams(b)}
	h.Set(time.UnixMilli(1_795_000_000_000))
	e := functest.Environment(b, h.Database, redistest.Addr(b), h.upstreams.URL) // no proxy in between
	e.Postgres.MaxConns = 2 * clientsPerCore
	h.open(e)
	h.Log.Discard()
	cookie, body := h.guestHeaders("")[1], h.requestBody()
	var n atomic.Int64
	b.Run("mint", func(b *testing.B) {
		h.runParallel(b, func() bool {
			r := httptest.NewRequest("POST", web.BasePath+"/handoff", strings.NewReader(body))
			r.Header = http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {functest.Firefox}, "Cookie": {cookie},
				"Idempotency-Key": {"bench-" + strconv.FormatInt(n.Add(1), 10)},
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code == http.StatusCreated
		})
	})
	b.Run("repetition", func(b *testing.B) {
		h.runParallel(b, func() bool {
			r := httptest.NewRequest("POST", web.BasePath+"/handoff", strings.NewReader(body))
			r.Header = http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {functest.Firefox}, "Cookie": {cookie}, "Idempotency-Key": {"bench-1"},
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code == http.StatusCreated
		})
	})
	b.Run("inserts pipelined", func(b *testing.B) {
		h.runParallel(b, func() bool { return h.Deps.DB.SendBatch(context.Background(), h.mintInserts(b)).Close() == nil })
	})
	b.Run("inserts one by one", func(b *testing.B) {
		h.runParallel(b, func() bool {
			return pgx.BeginFunc(context.Background(), h.Deps.DB, func(tx pgx.Tx) error {
				for _, q := range h.mintInserts(b).QueuedQueries {
					if _, err := tx.Exec(context.Background(), q.SQL, q.Arguments...); err != nil {
						return err
					}
				}
				return nil
			}) == nil
		})
	})
}

// runParallel runs op by clientsPerCore clients per core.
func (h *harness) runParallel(b *testing.B, op func() bool) {
	b.SetParallelism(clientsPerCore)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !op() {
				b.Error("failed")
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}

// mintInserts returns the three inserts of a mint.
func (h *harness) mintInserts(b *testing.B) *pgx.Batch {
	now := h.Now()
	e := ledger.Entry{Fingerprint: "sha256:" + strings.Repeat("ab", 32), IPHash: "sha256:" + strings.Repeat("cd", 32)}
	e.ID, e.GuestSessionID, e.TenantID, e.PropertyID = id.New(id.Handoff, now), id.New(id.Session, now), tenantID(1), propertyID(1)
	e.Dates = stay.Dates{CheckIn: stay.DateOf(now), CheckOut: stay.DateOf(now).AddDays(3)}
	e.Adults, e.Rooms, e.Currency, e.Locale, e.KeyID = 2, 1, "AFN", "ps-AF", "hmac-2026-11"
	e.MintedAt, e.ExpiresAt = now, now.Add(time.Minute)
	batch := &pgx.Batch{}
	batch.Queue(`
		INSERT INTO bff_consumer.idempotency_keys
		       (composite_key, guest_session_id, route, request_digest, response_status, response_body, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, to_jsonb($6::text), $7, $8)`,
		id.New(id.Request, now), e.GuestSessionID, route, make([]byte, 32), 201, strings.Repeat("x", 600), now, now)
	if err := ledger.Queue(batch, e); err != nil {
		b.Fatal(err)
	}
	if err := outbox.Queue(batch, event.New(event.Meta{SessionID: e.GuestSessionID, Now: now}, newHandoffInitiated(&e, "kabul-grand", ""))); err != nil {
		b.Fatal(err)
	}
	return batch
}
