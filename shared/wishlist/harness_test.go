package wishlist

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

var noon = time.Date(2026, 4, 23, 12, 0, 0, 0, time.UTC)

// harness is a Store with stores of its own and a session that exists in Redis.
type harness struct {
	*Store
	t       testing.TB
	db      *pgxpool.Pool
	rdb     redis.UniversalClient
	time    time.Time
	session string
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	return newHarnessOn(t, pgtest.URL(t))
}

// newHarnessWithProxy returns a harness whose Postgres the test can break.
func newHarnessWithProxy(t testing.TB) (*harness, *localstores.Proxy) {
	t.Helper()
	url, proxy := pgtest.ProxiedURL(t)
	h := newHarnessOn(t, url)
	t.Cleanup(proxy.Heal) // before Close, which waits for a hanging server
	return h, proxy
}

func newHarnessOn(t testing.TB, url string) *harness {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	h := &harness{t: t, db: db, rdb: redistest.NewServer(t).Client(), time: noon, session: id.New(id.Session, noon)}
	h.Store = New(h.rdb, db, redisclient.Keys{Env: "test"}, func() time.Time { return h.time })
	h.createSession()
	return h
}

// createSession writes the session's hash, as a request of the guest does.
func (h *harness) createSession() {
	h.rdb.HSet(h.t.Context(), h.keys.Session(h.session), "bindingHash", "x")
}

// newAddRequest returns the request to add property n.
func newAddRequest(n int) AddRequest {
	return AddRequest{PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n%7), Source: "detail"}
}

func (h *harness) addedEvent(w AddRequest) event.Event {
	return event.New(event.Meta{SessionID: h.session, Now: h.time}, event.WishlistAdded{
		GuestSessionID: h.session, TenantID: w.TenantID, PropertyID: w.PropertyID, Source: w.Source, AddedAt: h.time,
	})
}

func (h *harness) removedEvent(property string) event.Event {
	return event.New(event.Meta{SessionID: h.session, Now: h.time}, event.WishlistRemoved{
		GuestSessionID: h.session, PropertyID: property, RemovedAt: h.time,
	})
}

// exec runs the commands that enqueue queues.
func (h *harness) exec(enqueue func(redis.Pipeliner)) {
	h.t.Helper()
	pipe := h.rdb.Pipeline()
	enqueue(pipe)
	if err := lua.Exec(h.t.Context(), pipe); err != nil {
		h.t.Error(err)
	}
}

// writeCopy updates the copy after a mutation, as a request does.
func (h *harness) writeCopy(c *Change) {
	h.t.Helper()
	h.exec(func(pipe redis.Pipeliner) { h.EnqueueCopy(h.t.Context(), pipe, h.session, c) })
	if err := h.RebuildCopy(h.t.Context(), h.session, c); err != nil {
		h.t.Error(err)
	}
}

func (h *harness) add(w AddRequest) *Change {
	h.t.Helper()
	c, err := h.Add(h.t.Context(), h.session, w, h.addedEvent(w))
	if err != nil {
		h.t.Fatal(err)
	}
	h.writeCopy(c)
	return c
}

// remove removes property n.
func (h *harness) remove(n int) *Change {
	h.t.Helper()
	property := newAddRequest(n).PropertyID
	c, err := h.Remove(h.t.Context(), h.session, property, h.removedEvent(property))
	if err != nil {
		h.t.Fatal(err)
	}
	h.writeCopy(c)
	return c
}

// requireChange fails the test unless a mutation had this effect and left a list of this size.
func requireChange(t testing.TB, got *Change, applied bool, size int) {
	t.Helper()
	if got.Applied != applied || got.Size != size {
		t.Errorf("applied %t, size %d; want %t and %d", got.Applied, got.Size, applied, size)
	}
}

// copyEntries returns the entries of the copy.
func (h *harness) copyEntries() (entries []jsontext.Value) {
	h.t.Helper()
	for _, text := range h.rdb.LRange(h.t.Context(), h.listKey(h.session), 0, -1).Val() {
		entries = append(entries, jsontext.Value(text))
	}
	return entries
}

// record returns the list in Postgres. It waits longer than Get, for a machine busy with other
// tests.
func (h *harness) record() List {
	h.t.Helper()
	list, err := h.read(h.t.Context(), h.session, 10*time.Second)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// requireConsistent fails the test unless Redis and Postgres have the same list, and returns it.
func (h *harness) requireConsistent() List {
	h.t.Helper()
	record := h.record()
	copied, err := DecodeCopy(h.copyEntries())
	if err != nil {
		h.t.Fatal(err)
	}
	if diff := cmp.Diff(record.Items, copied.Items); diff != "" {
		h.t.Errorf("items (-Postgres +Redis):\n%s", diff)
	}
	return record
}

// properties returns the properties of items, in order.
func properties(items []Item) (ids []string) {
	for _, i := range items {
		ids = append(ids, i.PropertyID)
	}
	return ids
}

// propertyIDs returns the ids of properties, in order.
func propertyIDs(numbers ...int) (ids []string) {
	for _, n := range numbers {
		ids = append(ids, newAddRequest(n).PropertyID)
	}
	return ids
}

// events returns the messages in the outbox, and fails the test for one that does not match its
// schema.
func (h *harness) events() []event.Event {
	h.t.Helper()
	rows, _ := h.db.Query(h.t.Context(), `SELECT payload FROM bff_consumer.outbox ORDER BY created_at, id`)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		var message []byte
		if err = row.Scan(&message); err == nil {
			err = e.UnmarshalJSON(message)
		}
		return e, err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range all {
		if err := strict.Validate(e); err != nil {
			h.t.Errorf("%v in %+v", err, e.Payload)
		}
	}
	return all
}

// setConsent writes a consent record of the session with this cleared_at, an SQL expression.
func (h *harness) setConsent(telemetry bool, clearedAt string) {
	h.t.Helper()
	_, err := h.db.Exec(h.t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, false, now(), `+clearedAt+`)`, h.session, telemetry)
	if err != nil {
		h.t.Fatal(err)
	}
}
