package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// trigger posts orders as a push does, and returns the answer after holding it against the API description.
func (h *harness) trigger(r *Relay, body string, log io.Writer) (int, string) {
	h.Helper()
	f := web.NewInternal("Relay", "POST /internal/jobs/relay", time.Minute, func(context.Context, *lifecycle.WarmUp) (web.Handler, error) { return r.Serve, nil })
	if err := f.OpenWithLog(context.Background(), log); err != nil {
		h.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/internal/jobs/relay", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, req)
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	doc, err := loader.LoadFromFile("../../api/internal.openapi.yaml")
	if err != nil {
		h.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		h.Fatal(err)
	}
	route, params, err := router.FindRoute(req)
	if err != nil {
		h.Fatal(err)
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: params},
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		h.Errorf("the answer breaks the API description: %v\n%s", err, w.Body)
	}
	return w.Code, w.Body.String()
}

func pushBody(orders string) string {
	return `{"message":{"messageId":"1","data":"` + base64.StdEncoding.EncodeToString([]byte(orders)) + `"},"subscription":"projects/p/subscriptions/bff-consumer.jobs.relay"}`
}

func TestRelayServe_ReturnsAndLogsReport(t *testing.T) {
	h := newHarness(t)
	warned := captureLogs(t)
	var log lockedBuffer
	h.addEvents(newEvents(newSession(), "lc")...)
	status, body := h.trigger(h.newRelay(), pushBody(`{"once":true}`), &log)
	var report Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || status != http.StatusOK || report.Published != 2 {
		t.Errorf("%d %s %v", status, body, err)
	}
	var record struct{ Relay Report }
	if err := json.Unmarshal([]byte(log.String()), &record); err != nil || record.Relay != report {
		t.Errorf("%s %v", log.String(), err)
	}
	if strings.Contains(warned.String(), "undelivered events") {
		t.Errorf("warned of nothing: %s", warned)
	}
	short := h.newRelay(func(e *environment) { e.Run = time.Millisecond })
	if status, body := h.trigger(short, pushBody(`{}`), io.Discard); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestRelayServe_WarnsOfLateAndParkedEvents(t *testing.T) {
	for name, change := range map[string]string{
		"late":   `UPDATE bff_consumer.outbox SET created_at = now() - interval '301 seconds'`,
		"parked": `UPDATE bff_consumer.outbox SET parked_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			warned := captureLogs(t)
			h.addEvents(newEvents(newSession(), "l")...)
			h.exec(change)
			h.advance(time.Second)
			h.trigger(h.newRelay(), pushBody(`{"dryRun":true}`), io.Discard)
			if n := strings.Count(warned.String(), "outbox: undelivered events"); n != 1 || !strings.Contains(warned.String(), `"level":"WARN"`) {
				t.Errorf("%d warnings: %s", n, warned)
			}
		})
	}
}

func TestRelayServe_ReportsLastOutage(t *testing.T) {
	h := newHarness(t)
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior {
		return pubsubtest.Behavior{RejectCode: codes.PermissionDenied}
	})
	h.addEvents(newEvents(newSession(), "l")...)
	_, body := h.trigger(h.newRelay(), pushBody(`{"once":true}`), io.Discard)
	if want := `"lastOutage":"melmastoon.bff.consumer.locale.changed.v1: PermissionDenied"`; !strings.Contains(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
}

func TestRelayServe_RejectsMalformedRequest(t *testing.T) {
	h := newHarness(t)
	ids := h.addEvents(newEvents(newSession(), "l")...)
	for _, body := range []string{``, `x`, `{}`, pushBody(`nonsense`), pushBody(`{"once":"yes"}`), pushBody(`null`), pushBody(` null`),
		pushBody(`{"dryRun":null}`), pushBody(`{"once":true,"dryRun":null}`), pushBody(`{"dryrun":true}`), pushBody(`{"dryRun":true,"force":true}`)} {
		if status, answer := h.trigger(h.newRelay(), body, io.Discard); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if h.countPending() != len(ids) {
		t.Error("it sent something")
	}
}

func TestRelayServe_FailsWhenReportCannotBeRead(t *testing.T) {
	h := newHarness(t)
	r := h.newRelay(func(e *environment) { e.Postgres.URL = "postgres://nobody@127.0.0.1:1/none" })
	if status, body := h.trigger(r, pushBody(`{"once":true}`), io.Discard); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

// queryTracer counts what is asked of Postgres.
type queryTracer struct {
	mu              sync.Mutex
	roundTrips      int
	queries         []string
	pendingDeadline time.Time // until when it was last asked whether anything waits
}

func (s *queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.record(q.SQL, true)
	if strings.HasPrefix(strings.TrimSpace(q.SQL), "SELECT true") {
		s.pendingDeadline, _ = ctx.Deadline()
	}
	return ctx
}
func (s *queryTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	s.record("", true)
	return ctx
}
func (s *queryTracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.record(q.SQL, false)
}
func (s *queryTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *queryTracer) record(sql string, trip bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trip {
		s.roundTrips++
	}
	if sql != "" {
		s.queries = append(s.queries, strings.Join(strings.Fields(sql), " "))
	}
}

func TestRelayRun_BatchUsesTwoRoundTripsAndPollOne(t *testing.T) {
	h := newHarness(t)
	before := consentMaxAge
	consentMaxAge = time.Hour // a busy machine would ask again
	t.Cleanup(func() { consentMaxAge = before })
	r := h.newRelay()
	count := &queryTracer{}
	cfg := r.db.Config()
	cfg.ConnConfig.Tracer = count
	r.db.Close()
	var err error
	if r.db, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	lane := newSession()[29:]
	for range batchSize / 2 {
		h.addEvents(newEvents(newSession()[:29]+lane, "lc")...)
	}
	asked := func(trips int, want ...string) {
		t.Helper()
		ok := len(count.queries) == len(want)
		for i := range min(len(want), len(count.queries)) {
			ok = ok && strings.HasPrefix(count.queries[i], want[i])
		}
		if !ok || count.roundTrips != trips {
			t.Errorf("%d round trips:\n%s", count.roundTrips, strings.Join(count.queries, "\n"))
		}
		count.queries, count.roundTrips = nil, 0
	}
	h.runOnce(r)
	// Whether anything waits, a look, the batch that is full, the one that finds the lane's end, a look that finds nothing, the report.
	asked(8, "SELECT true", "WITH RECURSIVE walk (shard", "BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "UPDATE", "COMMIT",
		"BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "ROLLBACK", "WITH RECURSIVE walk (shard", "SELECT count(*)")
	h.runOnce(r)
	asked(2, "SELECT true", "SELECT count(*)")
	// By one that hangs a run is told in time, and not by its end.
	if end := count.pendingDeadline; end.IsZero() || end.After(time.Now().Add(queryTimeout)) {
		t.Errorf("whether anything waits has until %v", end)
	}
}
