package sweep

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// harness is the entry points over real stores, with the environment they are deployed with.
type harness struct {
	t     testing.TB
	db    *pgxpool.Pool
	redis *redistest.Redis
	rdb   redis.UniversalClient
}

var keys = redisclient.Keys{Env: "test"}

func newHarness(t testing.TB) *harness {
	url := pgtest.URL(t)
	h := &harness{t: t, redis: redistest.NewServer(t)}
	h.rdb = h.redis.Client()
	var err error
	if h.db, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.db.Close)
	t.Setenv("ENVIRONMENT", keys.Env)
	t.Setenv("REDIS_ADDR", h.redis.Addr)
	t.Setenv("DATABASE_URL", url)
	h.openAll()
	return h
}

// openAll builds every entry point anew.
func (h *harness) openAll() {
	h.t.Helper()
	for _, f := range web.Functions() {
		if err := f.OpenWithLog(context.Background(), io.Discard); err != nil {
			h.t.Fatal(err)
		}
	}
}

// trigger pushes orders to an entry point, as the broker does.
func (h *harness) trigger(name, orders string) (int, Report) {
	h.t.Helper()
	body := fmt.Sprintf(`{"message":{"data":%q,"messageId":"1"},"subscription":"s"}`, base64.StdEncoding.EncodeToString([]byte(orders)))
	return h.post(name, body)
}

func (h *harness) post(name, body string) (int, Report) {
	h.t.Helper()
	for _, f := range web.Functions() {
		if f.Name != name {
			continue
		}
		_, path, _ := strings.Cut(f.Pattern, " ")
		rec := httptest.NewRecorder()
		req := httptest.NewRequest("POST", path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		f.ServeHTTP(rec, req)
		var report Report
		if rec.Code == 200 {
			if err := json.Unmarshal(rec.Body.Bytes(), &report); err != nil {
				h.t.Fatalf("%s: %v", rec.Body, err)
			}
		}
		return rec.Code, report
	}
	h.t.Fatalf("no entry point %s", name)
	return 0, Report{}
}

// mustRemove is a run that succeeds and removes so much.
func (h *harness) mustRemove(name, orders string, removed int64) Report {
	h.t.Helper()
	code, report := h.trigger(name, orders)
	if code != 200 || report.Removed != removed || report.More {
		h.t.Errorf("%s %s: %d %+v, want %d", name, orders, code, report, removed)
	}
	return report
}

func (h *harness) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.db.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func (h *harness) count(from string, args ...any) (n int64) {
	h.t.Helper()
	if err := h.db.QueryRow(context.Background(), "SELECT count(*) FROM bff_consumer."+from, args...).Scan(&n); err != nil {
		h.t.Fatalf("%s: %v", from, err)
	}
	return n
}

const day = 24 * time.Hour
