package wishlist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// harness is a Room with its stores, for one session that exists.
type harness struct {
	*Store
	t       testing.TB
	db      *pgxpool.Pool
	proxy   *localstores.Proxy // takes Postgres away
	rdb     redis.UniversalClient
	time    time.Time
	session string
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	url, away := pgtest.ProxiedURL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(away.Heal)
	d := &harness{t: t, db: db, proxy: away, rdb: redistest.New(t), time: noon, session: id.New(id.Session, noon)}
	d.Store = New(d.rdb, db, redisclient.Keys{Env: "test"}, func() time.Time { return d.time })
	d.createSession()
	return d
}

// createSession is what a visit does in Redis.
func (d *harness) createSession() {
	d.rdb.HSet(d.t.Context(), d.keys.Session(d.session), "bindingHash", "x")
}

func newAddRequest(n int) AddRequest {
	return AddRequest{PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n%7), Source: "detail"}
}

func (d *harness) addedEvent(w AddRequest) event.Event {
	return event.New(event.Meta{SessionID: d.session, Now: d.time}, event.WishlistAdded{
		GuestSessionID: d.session, TenantID: w.TenantID, PropertyID: w.PropertyID, Source: w.Source, AddedAt: d.time,
	})
}

func (d *harness) removedEvent(property string) event.Event {
	return event.New(event.Meta{SessionID: d.session, Now: d.time}, event.WishlistRemoved{
		GuestSessionID: d.session, PropertyID: property, RemovedAt: d.time,
	})
}

func (d *harness) writeCopy(c *Change) {
	d.t.Helper()
	pipe := d.rdb.Pipeline()
	d.EnqueueCopy(d.t.Context(), pipe, d.session, c)
	if err := lua.Exec(d.t.Context(), pipe); err != nil {
		d.t.Error(err)
	}
	if err := d.RebuildCopy(d.t.Context(), d.session, c); err != nil {
		d.t.Error(err)
	}
}

func (d *harness) add(w AddRequest) *Change {
	d.t.Helper()
	c, err := d.Add(d.t.Context(), d.session, w, d.addedEvent(w))
	if err != nil {
		d.t.Fatal(err)
	}
	d.writeCopy(c)
	return c
}

func (d *harness) remove(n int) *Change {
	d.t.Helper()
	c, err := d.Remove(d.t.Context(), d.session, newAddRequest(n).PropertyID, d.removedEvent(newAddRequest(n).PropertyID))
	if err != nil {
		d.t.Fatal(err)
	}
	d.writeCopy(c)
	return c
}

// copyEntries are the entries of the copy.
func (d *harness) copyEntries() []jsontext.Value {
	d.t.Helper()
	var list []jsontext.Value
	for _, text := range d.rdb.LRange(d.t.Context(), d.listKey(d.session), 0, -1).Val() {
		list = append(list, jsontext.Value(text))
	}
	return list
}

// requireConsistent fails unless Redis and Postgres hold the same list, and returns it.
func (d *harness) requireConsistent() List {
	d.t.Helper()
	record, err := d.Get(d.t.Context(), d.session)
	if err != nil {
		d.t.Fatal(err)
	}
	copied, err := DecodeCopy(d.copyEntries())
	if err != nil {
		d.t.Fatal(err)
	}
	if !slices.Equal(record.Items, copied.Items) {
		d.t.Errorf("Postgres has %d items, Redis %d:\n%v\n%v", len(record.Items), len(copied.Items), record.Items, copied.Items)
	}
	return record
}

// events are the messages in the outbox, each held against its schema.
func (d *harness) events() []event.Event {
	d.t.Helper()
	rows, _ := d.db.Query(d.t.Context(), `SELECT payload FROM bff_consumer.outbox ORDER BY created_at, id`)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		var message []byte
		if err = row.Scan(&message); err == nil {
			err = e.UnmarshalJSON(message)
		}
		return e, err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range all {
		if err := strict.Validate(e); err != nil {
			d.t.Errorf("%v in %+v", err, e.Payload)
		}
	}
	return all
}

func TestStoreAdd_AddsOnceAndRecordsOneEvent(t *testing.T) {
	d := newHarness(t)
	w := newAddRequest(1)
	w.Note = "کنار دریا, 2nd floor"
	first := d.add(w)
	if !first.Applied || first.Size != 1 || first.Item.Note != w.Note || first.Item.TenantID != w.TenantID || first.Item.AddedAt != "2026-04-23T12:00:00.000Z" {
		t.Fatalf("%+v", first)
	}
	d.time = noon.Add(time.Hour)
	other := newAddRequest(1)
	other.Source, other.Note, other.TenantID = "map", "another", newAddRequest(2).TenantID
	if again := d.add(other); again.Applied || again.Size != 1 || again.Item != first.Item {
		t.Errorf("added again: %+v, want %+v", again, first.Item)
	}
	if second := d.add(newAddRequest(2)); second.Size != 2 {
		t.Errorf("%+v", second)
	}
	d.requireConsistent()
	events := d.events()
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	told := events[0].Payload.(event.WishlistAdded)
	if told.WishlistID != first.Item.ID || told.WishlistSize != 1 || !told.AddedAt.Equal(noon) || events[1].Payload.(event.WishlistAdded).WishlistSize != 2 {
		t.Errorf("%+v", told)
	}
}

func TestStoreAdd_RevivesRemovedItem(t *testing.T) {
	d := newHarness(t)
	first := d.add(newAddRequest(1))
	d.add(newAddRequest(2))
	if gone := d.remove(1); !gone.Applied || gone.Size != 1 {
		t.Errorf("removed: %+v", gone)
	}
	if gone := d.remove(1); gone.Applied || gone.Size != 1 {
		t.Errorf("removed again: %+v", gone)
	}
	if gone := d.remove(9); gone.Applied {
		t.Errorf("what was never there: %+v", gone)
	}
	list := d.requireConsistent()
	if len(list.Items) != 1 || len(list.Removed) != 1 || list.Removed[0].ID != first.Item.ID {
		t.Errorf("%+v", list)
	}
	back := newAddRequest(1)
	back.Source, back.Note = "list", "again"
	again := d.add(back)
	if !again.Applied || again.Item.ID != first.Item.ID || again.Item.Note != "again" || again.Item.Source != "list" || again.Size != 2 {
		t.Errorf("revived: %+v", again)
	}
	if list = d.requireConsistent(); list.Items[1].ID != first.Item.ID {
		t.Errorf("what was revived is not the newest: %+v", list.Items)
	}
	events := d.events()
	if len(events) != 4 {
		t.Fatalf("%d events", len(events))
	}
	taken := events[2].Payload.(event.WishlistRemoved)
	if taken.WishlistID != first.Item.ID || taken.TenantID != newAddRequest(1).TenantID || taken.WishlistSize != 1 {
		t.Errorf("%+v", taken)
	}
}

func TestStoreRemove_EventHasFullTenantID(t *testing.T) {
	d := newHarness(t)
	for n, tenant := range []string{
		"tnt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "tnt_00000000000000000000000000", "tnt_01KPWGB8XKFVZN6H3S0T5QYJ4F", "tnt_5A5A5A5A5A5A5A5A5A5A5A5A5A",
	} {
		w := newAddRequest(n)
		w.TenantID = tenant
		d.add(w)
		d.remove(n)
		events := d.events()
		if got := events[len(events)-1].Payload.(event.WishlistRemoved).TenantID; got != tenant {
			t.Errorf("%s became %s", tenant, got)
		}
	}
}

func TestStoreAdd_TimesAscendDespiteClockSkew(t *testing.T) {
	d := newHarness(t)
	for n := range 5 {
		d.time = noon.Add(-time.Duration(n) * time.Minute)
		d.add(newAddRequest(n))
	}
	d.remove(4)
	list := d.requireConsistent()
	for i := 1; i < len(list.Items); i++ {
		if list.Items[i].AddedAt <= list.Items[i-1].AddedAt {
			t.Errorf("%s is not after %s", list.Items[i].AddedAt, list.Items[i-1].AddedAt)
		}
	}
	if list.Items[0].PropertyID != newAddRequest(0).PropertyID || list.NewestFirst()[0].PropertyID != newAddRequest(3).PropertyID {
		t.Errorf("%+v", list.Items)
	}
}

func TestStoreAdd_200ConcurrentAddsRespectLimit(t *testing.T) {
	d := newHarness(t)
	var mu sync.Mutex
	var added, there, full int
	var sizes []int
	var all sync.WaitGroup
	for n := range 200 { // 150 properties, 50 of them twice
		all.Go(func() {
			w := newAddRequest(n % 150)
			c, err := d.Add(context.Background(), d.session, w, d.addedEvent(w))
			mu.Lock()
			switch {
			case errors.Is(err, ErrFull):
				full++
			case err != nil:
				t.Error(err)
			case c.Applied:
				added++
				sizes = append(sizes, c.Size)
			default:
				there++
			}
			mu.Unlock()
			if err == nil {
				d.writeCopy(c)
			}
		})
	}
	all.Wait()
	slices.Sort(sizes)
	if added != MaxItems || added+there+full != 200 || slices.Compact(sizes)[len(sizes)-1] != MaxItems || len(sizes) != MaxItems {
		t.Errorf("%d added, %d there, %d refused", added, there, full)
	}
	list := d.requireConsistent()
	if len(list.Items) != MaxItems {
		t.Fatalf("%d items", len(list.Items))
	}
	if n := len(d.events()); n != MaxItems {
		t.Errorf("%d events", n)
	}
	one := list.Items[0]
	if c := d.add(AddRequest{PropertyID: one.PropertyID, TenantID: one.TenantID, Source: "list"}); c.Applied || c.Item != one {
		t.Errorf("one that is there, on a full list: %+v", c)
	}
}

func TestStore_ConcurrentMutationsKeepStoresConsistent(t *testing.T) {
	d := newHarness(t)
	var all sync.WaitGroup
	for n := range 120 {
		all.Go(func() {
			w := newAddRequest(n % 12)
			c, err := d.Add(context.Background(), d.session, w, d.addedEvent(w))
			if n%3 == 0 {
				c, err = d.Remove(context.Background(), d.session, w.PropertyID, d.removedEvent(w.PropertyID))
			}
			if err != nil {
				t.Error(err)
				return
			}
			d.writeCopy(c)
		})
	}
	all.Wait()
	d.requireConsistent()
	size := 0
	for _, e := range d.events() { // in the order of the session's lock only if sizes follow each other
		switch p := e.Payload.(type) {
		case event.WishlistAdded:
			size++
		case event.WishlistRemoved:
			size--
			if p.WishlistSize < 0 {
				t.Errorf("%+v", p)
			}
		}
	}
	if list, _ := d.Get(t.Context(), d.session); size != len(list.Items) {
		t.Errorf("the events add up to %d, the list holds %d", size, len(list.Items))
	}
}

func TestStoreAdd_FullListAcceptsItemAfterRemoval(t *testing.T) {
	d := newHarness(t)
	for n := range MaxItems {
		d.add(newAddRequest(n))
	}
	if _, err := d.Add(t.Context(), d.session, newAddRequest(MaxItems), d.addedEvent(newAddRequest(MaxItems))); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if c := d.add(newAddRequest(5)); c.Applied || c.Size != MaxItems {
		t.Errorf("one that is there: %+v", c)
	}
	d.remove(7)
	if c := d.add(newAddRequest(MaxItems)); !c.Applied || c.Size != MaxItems {
		t.Errorf("%+v", c)
	}
	d.requireConsistent()
}

func TestStoreRemove_TrimsRemovedRows(t *testing.T) {
	d := newHarness(t)
	for n := range maxRemoved + 20 {
		d.add(newAddRequest(n))
		d.remove(n)
	}
	list, err := d.Get(t.Context(), d.session)
	if err != nil || len(list.Removed) > maxRemoved+1 || len(list.Removed) < maxRemoved {
		t.Errorf("%d removed rows, %v", len(list.Removed), err)
	}
	d.add(newAddRequest(1))
	d.requireConsistent()
}
