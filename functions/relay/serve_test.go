package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

var number atomic.Int64 // makes the names of functions under test unique in the registry

// tick posts orders as a push does, and returns the answer after holding it against the API description.
func (h *house) tick(r *Relay, body string, log io.Writer) (int, string) {
	h.Helper()
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.OpenWithin(name, "POST /internal/jobs/relay", time.Minute, func(context.Context) (web.Handler, error) { return r.Serve, nil })
	req := httptest.NewRequest("POST", "/internal/jobs/relay", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), log); err != nil {
				h.Fatal(err)
			}
			f.ServeHTTP(w, req)
		}
	}
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

func pushed(orders string) string {
	return `{"message":{"messageId":"1","data":"` + base64.StdEncoding.EncodeToString([]byte(orders)) + `"},"subscription":"projects/p/subscriptions/bff-consumer.jobs.relay"}`
}

func TestATickIsAnsweredWithWhatWasDone(t *testing.T) {
	h := newHouse(t)
	warned := logged(t)
	var log lockedBuffer
	h.add(events(newSession(), "lc")...)
	status, body := h.tick(h.relay(), pushed(`{"once":true}`), &log)
	var report Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || status != http.StatusOK || report.Published != 2 {
		t.Errorf("%d %s %v", status, body, err)
	}
	var record struct{ Relay Report }
	if err := json.Unmarshal([]byte(log.String()), &record); err != nil || record.Relay != report {
		t.Errorf("%s %v", log.String(), err)
	}
	if strings.Contains(warned.String(), "do not get out") {
		t.Errorf("warned of nothing: %s", warned)
	}
	short := h.relay(func(e *environment) { e.Run = time.Millisecond })
	if status, body := h.tick(short, pushed(`{}`), io.Discard); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestSomebodyIsToldOfEventsThatDoNotGetOut(t *testing.T) {
	for name, change := range map[string]string{
		"late":   `UPDATE bff_consumer.outbox SET created_at = now() - interval '301 seconds'`,
		"parked": `UPDATE bff_consumer.outbox SET parked_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			warned := logged(t)
			h.add(events(newSession(), "l")...)
			h.exec(change)
			h.advance(time.Second)
			h.tick(h.relay(), pushed(`{"dryRun":true}`), io.Discard)
			if n := strings.Count(warned.String(), "events do not get out"); n != 1 || !strings.Contains(warned.String(), `"level":"WARN"`) {
				t.Errorf("%d warnings: %s", n, warned)
			}
		})
	}
}

func TestATickSaysWhatTheLastOutageWas(t *testing.T) {
	h := newHouse(t)
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction {
		return pubsubtest.Reaction{Refuse: codes.PermissionDenied}
	})
	h.add(events(newSession(), "l")...)
	_, body := h.tick(h.relay(), pushed(`{"once":true}`), io.Discard)
	if want := `"lastOutage":"melmastoon.bff.consumer.locale.changed.v1: PermissionDenied"`; !strings.Contains(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
}

func TestATickThatCannotBeReadIsRefused(t *testing.T) {
	h := newHouse(t)
	ids := h.add(events(newSession(), "l")...)
	for _, body := range []string{``, `x`, `{}`, pushed(`nonsense`), pushed(`{"once":"yes"}`), pushed(`null`), pushed(` null`),
		pushed(`{"dryRun":null}`), pushed(`{"once":true,"dryRun":null}`), pushed(`{"dryrun":true}`), pushed(`{"dryRun":true,"force":true}`)} {
		if status, answer := h.tick(h.relay(), body, io.Discard); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if h.waiting() != len(ids) {
		t.Error("it sent something")
	}
}

func TestARunThatCannotReportFailed(t *testing.T) {
	h := newHouse(t)
	r := h.relay(func(e *environment) { e.DatabaseURL = "postgres://nobody@127.0.0.1:1/none" })
	if status, body := h.tick(r, pushed(`{"once":true}`), io.Discard); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

// statements counts what is asked of Postgres.
type statements struct {
	mu    sync.Mutex
	trips int
	all   []string
	waits time.Time // until when it was last asked whether anything waits
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.note(q.SQL, true)
	if strings.HasPrefix(strings.TrimSpace(q.SQL), "SELECT true") {
		s.waits, _ = ctx.Deadline()
	}
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	s.note("", true)
	return ctx
}
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.note(q.SQL, false)
}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *statements) note(sql string, trip bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trip {
		s.trips++
	}
	if sql != "" {
		s.all = append(s.all, strings.Join(strings.Fields(sql), " "))
	}
}

func TestABatchIsTwoRoundTripsAndALookIsOne(t *testing.T) {
	h := newHouse(t)
	before := askedLately
	askedLately = time.Hour // a busy machine would ask again
	t.Cleanup(func() { askedLately = before })
	r := h.relay()
	count := &statements{}
	cfg := r.db.Config()
	cfg.ConnConfig.Tracer = count
	r.db.Close()
	var err error
	if r.db, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	lane := newSession()[29:]
	for range rowsAtOnce / 2 {
		h.add(events(newSession()[:29]+lane, "lc")...)
	}
	asked := func(trips int, want ...string) {
		t.Helper()
		ok := len(count.all) == len(want)
		for i := range min(len(want), len(count.all)) {
			ok = ok && strings.HasPrefix(count.all[i], want[i])
		}
		if !ok || count.trips != trips {
			t.Errorf("%d round trips:\n%s", count.trips, strings.Join(count.all, "\n"))
		}
		count.all, count.trips = nil, 0
	}
	h.once(r)
	// Whether anything waits, a look, the batch that is full, the one that finds the lane's end, a look that finds nothing, the report.
	asked(8, "SELECT true", "WITH RECURSIVE walk (lane", "BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "UPDATE", "COMMIT",
		"BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "ROLLBACK", "WITH RECURSIVE walk (lane", "SELECT count(*)")
	h.once(r)
	asked(2, "SELECT true", "SELECT count(*)")
	// By one that hangs a run is told in time, and not by its end.
	if end := count.waits; end.IsZero() || end.After(time.Now().Add(askWithin)) {
		t.Errorf("whether anything waits has until %v", end)
	}
}
