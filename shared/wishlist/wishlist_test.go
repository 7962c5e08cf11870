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
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

var noon = time.Date(2026, 4, 23, 12, 0, 0, 0, time.UTC)

// desk is a Room with its stores, for one session that exists.
type desk struct {
	*Room
	t       testing.TB
	db      *pgxpool.Pool
	away    *stores.Proxy // takes Postgres away
	rdb     redis.UniversalClient
	time    time.Time
	session string
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	url, away := pgtest.Behind(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(away.Heal)
	d := &desk{t: t, db: db, away: away, rdb: redistest.New(t), time: noon, session: id.New(id.Session, noon)}
	d.Room = New(d.rdb, db, keyspace.Keys{Env: "test"}, func() time.Time { return d.time })
	d.exist()
	return d
}

// exist is what a visit does in Redis.
func (d *desk) exist() { d.rdb.HSet(d.t.Context(), d.keys.Session(d.session), "bindingHash", "x") }

func wish(n int) Wish {
	return Wish{PropertyID: fmt.Sprintf("ppt_%026d", n), TenantID: fmt.Sprintf("tnt_%026d", n%7), Source: "detail"}
}

func (d *desk) added(w Wish) event.Event {
	return event.New(event.Meta{SessionID: d.session, Now: d.time}, event.WishlistAdded{
		GuestSessionID: d.session, TenantID: w.TenantID, PropertyID: w.PropertyID, Source: w.Source, AddedAt: d.time,
	})
}

func (d *desk) removed(property string) event.Event {
	return event.New(event.Meta{SessionID: d.session, Now: d.time}, event.WishlistRemoved{
		GuestSessionID: d.session, PropertyID: property, RemovedAt: d.time,
	})
}

func (d *desk) copy(c *Change) {
	d.t.Helper()
	pipe := d.rdb.Pipeline()
	d.Copy(d.t.Context(), pipe, d.session, c)
	if err := lua.Exec(d.t.Context(), pipe); err != nil {
		d.t.Error(err)
	}
	if err := d.Mend(d.t.Context(), d.session, c); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) add(w Wish) *Change {
	d.t.Helper()
	c, err := d.Add(d.t.Context(), d.session, w, d.added(w))
	if err != nil {
		d.t.Fatal(err)
	}
	d.copy(c)
	return c
}

func (d *desk) remove(n int) *Change {
	d.t.Helper()
	c, err := d.Remove(d.t.Context(), d.session, wish(n).PropertyID, d.removed(wish(n).PropertyID))
	if err != nil {
		d.t.Fatal(err)
	}
	d.copy(c)
	return c
}

// copied are the entries of the copy.
func (d *desk) copied() []jsontext.Value {
	d.t.Helper()
	var list []jsontext.Value
	for _, text := range d.rdb.LRange(d.t.Context(), d.list(d.session), 0, -1).Val() {
		list = append(list, jsontext.Value(text))
	}
	return list
}

// agree fails unless Redis and Postgres hold the same list, and returns it.
func (d *desk) agree() List {
	d.t.Helper()
	record, err := d.Get(d.t.Context(), d.session)
	if err != nil {
		d.t.Fatal(err)
	}
	copied, err := Decode(d.copied())
	if err != nil {
		d.t.Fatal(err)
	}
	if !slices.Equal(record.Items, copied.Items) {
		d.t.Errorf("Postgres has %d items, Redis %d:\n%v\n%v", len(record.Items), len(copied.Items), record.Items, copied.Items)
	}
	return record
}

// events are the messages in the outbox, each held against its schema.
func (d *desk) events() []event.Event {
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

func TestWhatIsAddedIsOnTheListAndToldOnce(t *testing.T) {
	d := newDesk(t)
	w := wish(1)
	w.Note = "کنار دریا, 2nd floor"
	first := d.add(w)
	if !first.Done || first.Size != 1 || first.Item.Note != w.Note || first.Item.TenantID != w.TenantID || first.Item.AddedAt != "2026-04-23T12:00:00.000Z" {
		t.Fatalf("%+v", first)
	}
	d.time = noon.Add(time.Hour)
	other := wish(1)
	other.Source, other.Note, other.TenantID = "map", "another", wish(2).TenantID
	if again := d.add(other); again.Done || again.Size != 1 || again.Item != first.Item {
		t.Errorf("added again: %+v, want %+v", again, first.Item)
	}
	if second := d.add(wish(2)); second.Size != 2 {
		t.Errorf("%+v", second)
	}
	d.agree()
	events := d.events()
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	told := events[0].Payload.(event.WishlistAdded)
	if told.WishlistID != first.Item.ID || told.WishlistSize != 1 || !told.AddedAt.Equal(noon) || events[1].Payload.(event.WishlistAdded).WishlistSize != 2 {
		t.Errorf("%+v", told)
	}
}

func TestAddRemoveAddAgain(t *testing.T) {
	d := newDesk(t)
	first := d.add(wish(1))
	d.add(wish(2))
	if gone := d.remove(1); !gone.Done || gone.Size != 1 {
		t.Errorf("removed: %+v", gone)
	}
	if gone := d.remove(1); gone.Done || gone.Size != 1 {
		t.Errorf("removed again: %+v", gone)
	}
	if gone := d.remove(9); gone.Done {
		t.Errorf("what was never there: %+v", gone)
	}
	list := d.agree()
	if len(list.Items) != 1 || len(list.Removed) != 1 || list.Removed[0].ID != first.Item.ID {
		t.Errorf("%+v", list)
	}
	back := wish(1)
	back.Source, back.Note = "list", "again"
	again := d.add(back)
	if !again.Done || again.Item.ID != first.Item.ID || again.Item.Note != "again" || again.Item.Source != "list" || again.Size != 2 {
		t.Errorf("revived: %+v", again)
	}
	if list = d.agree(); list.Items[1].ID != first.Item.ID {
		t.Errorf("what was revived is not the newest: %+v", list.Items)
	}
	events := d.events()
	if len(events) != 4 {
		t.Fatalf("%d events", len(events))
	}
	taken := events[2].Payload.(event.WishlistRemoved)
	if taken.WishlistID != first.Item.ID || taken.TenantID != wish(1).TenantID || taken.WishlistSize != 1 {
		t.Errorf("%+v", taken)
	}
}

func TestATenantIsNamedInAMessageByItsWholeId(t *testing.T) {
	d := newDesk(t)
	for n, tenant := range []string{
		"tnt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "tnt_00000000000000000000000000", "tnt_01KPWGB8XKFVZN6H3S0T5QYJ4F", "tnt_5A5A5A5A5A5A5A5A5A5A5A5A5A",
	} {
		w := wish(n)
		w.TenantID = tenant
		d.add(w)
		d.remove(n)
		events := d.events()
		if got := events[len(events)-1].Payload.(event.WishlistRemoved).TenantID; got != tenant {
			t.Errorf("%s became %s", tenant, got)
		}
	}
}

func TestTimesOfOneListAscendWhateverTheClocksSay(t *testing.T) {
	d := newDesk(t)
	for n := range 5 {
		d.time = noon.Add(-time.Duration(n) * time.Minute)
		d.add(wish(n))
	}
	d.remove(4)
	list := d.agree()
	for i := 1; i < len(list.Items); i++ {
		if list.Items[i].AddedAt <= list.Items[i-1].AddedAt {
			t.Errorf("%s is not after %s", list.Items[i].AddedAt, list.Items[i-1].AddedAt)
		}
	}
	if list.Items[0].PropertyID != wish(0).PropertyID || list.Newest()[0].PropertyID != wish(3).PropertyID {
		t.Errorf("%+v", list.Items)
	}
}

func TestTwoHundredAddAtOnce(t *testing.T) {
	d := newDesk(t)
	var mu sync.Mutex
	var added, there, full int
	var sizes []int
	var all sync.WaitGroup
	for n := range 200 { // 150 properties, 50 of them twice
		all.Go(func() {
			w := wish(n % 150)
			c, err := d.Add(context.Background(), d.session, w, d.added(w))
			mu.Lock()
			switch {
			case errors.Is(err, ErrFull):
				full++
			case err != nil:
				t.Error(err)
			case c.Done:
				added++
				sizes = append(sizes, c.Size)
			default:
				there++
			}
			mu.Unlock()
			if err == nil {
				d.copy(c)
			}
		})
	}
	all.Wait()
	slices.Sort(sizes)
	if added != Cap || added+there+full != 200 || slices.Compact(sizes)[len(sizes)-1] != Cap || len(sizes) != Cap {
		t.Errorf("%d added, %d there, %d refused", added, there, full)
	}
	list := d.agree()
	if len(list.Items) != Cap {
		t.Fatalf("%d items", len(list.Items))
	}
	if n := len(d.events()); n != Cap {
		t.Errorf("%d events", n)
	}
	one := list.Items[0]
	if c := d.add(Wish{PropertyID: one.PropertyID, TenantID: one.TenantID, Source: "list"}); c.Done || c.Item != one {
		t.Errorf("one that is there, on a full list: %+v", c)
	}
}

func TestAddsAndRemovesAtOnceLeaveTheStoresAgreeing(t *testing.T) {
	d := newDesk(t)
	var all sync.WaitGroup
	for n := range 120 {
		all.Go(func() {
			w := wish(n % 12)
			c, err := d.Add(context.Background(), d.session, w, d.added(w))
			if n%3 == 0 {
				c, err = d.Remove(context.Background(), d.session, w.PropertyID, d.removed(w.PropertyID))
			}
			if err != nil {
				t.Error(err)
				return
			}
			d.copy(c)
		})
	}
	all.Wait()
	d.agree()
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

func TestAFullListTakesOneMoreAfterARemoval(t *testing.T) {
	d := newDesk(t)
	for n := range Cap {
		d.add(wish(n))
	}
	if _, err := d.Add(t.Context(), d.session, wish(Cap), d.added(wish(Cap))); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if c := d.add(wish(5)); c.Done || c.Size != Cap {
		t.Errorf("one that is there: %+v", c)
	}
	d.remove(7)
	if c := d.add(wish(Cap)); !c.Done || c.Size != Cap {
		t.Errorf("%+v", c)
	}
	d.agree()
}

func TestRemovedRowsDoNotPileUp(t *testing.T) {
	d := newDesk(t)
	for n := range maxRemoved + 20 {
		d.add(wish(n))
		d.remove(n)
	}
	list, err := d.Get(t.Context(), d.session)
	if err != nil || len(list.Removed) > maxRemoved+1 || len(list.Removed) < maxRemoved {
		t.Errorf("%d removed rows, %v", len(list.Removed), err)
	}
	d.add(wish(1))
	d.agree()
}
