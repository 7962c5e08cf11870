package wishlist

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

func TestStoreRebuildCopy_RestoresLostOrStaleCopy(t *testing.T) {
	d := newHarness(t)
	d.add(newAddRequest(1))
	d.rdb.FlushAll(t.Context())
	d.rdb.ScriptFlush(t.Context())
	d.createSession()
	d.add(newAddRequest(2)) // does not fit the copy, which is gone
	d.requireConsistent()
	if _, err := d.Add(t.Context(), d.session, newAddRequest(3)); err != nil { // and dies before Redis hears of it
		t.Fatal(err)
	}
	d.add(newAddRequest(4))
	d.requireConsistent()
	if _, err := d.Add(t.Context(), d.session, newAddRequest(5)); err != nil {
		t.Fatal(err)
	}
	record, err := d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	pipe := d.rdb.Pipeline()
	d.EnqueueRepair(t.Context(), pipe, d.session, record, d.copyEntries(), true)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	d.requireConsistent()
	d.rdb.ScriptFlush(t.Context())
	d.add(newAddRequest(6))
	d.remove(6)
	d.requireConsistent()
	record, err = d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	pipe = d.rdb.Pipeline()
	d.EnqueueRepair(t.Context(), pipe, d.session, record, d.copyEntries(), true)
	if pipe.Len() != 0 {
		t.Error("a copy that is right is written again")
	}
}

func TestStoreEnqueueRepair_KeepsNewerCopy(t *testing.T) {
	d := newHarness(t)
	d.add(newAddRequest(1))
	old, err := d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	d.add(newAddRequest(2))
	pipe := d.rdb.Pipeline()
	d.EnqueueRepair(t.Context(), pipe, d.session, old, nil, false)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	d.requireConsistent()
}

func TestStore_RejectsClearedSession(t *testing.T) {
	d := newHarness(t)
	d.add(newAddRequest(1))
	before := len(d.events())
	_, err := d.db.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, true, false, now(), now())`, d.session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(t.Context(), d.session, newAddRequest(2), d.addedEvent(newAddRequest(2))); !errors.Is(err, session.ErrCleared) {
		t.Errorf("add: %v", err)
	}
	if _, err := d.Remove(t.Context(), d.session, newAddRequest(1).PropertyID, d.removedEvent(newAddRequest(1).PropertyID)); !errors.Is(err, session.ErrCleared) {
		t.Errorf("remove: %v", err)
	}
	if n := len(d.events()); n != before {
		t.Errorf("%d events more", n-before)
	}
	d.rdb.Del(t.Context(), d.keys.Session(d.session), d.listKey(d.session))
	if _, err := d.Get(t.Context(), d.session); !errors.Is(err, session.ErrCleared) {
		t.Errorf("get: %v", err)
	}
	pipe := d.rdb.Pipeline() // of a list that was read before
	d.EnqueueRepair(t.Context(), pipe, d.session, List{}, nil, false)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	if keys := d.rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("back in Redis: %v", keys)
	}
}

func TestStore_OptOutSuppressesOnlyEvents(t *testing.T) {
	d := newHarness(t)
	_, err := d.db.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, now())`, d.session)
	if err != nil {
		t.Fatal(err)
	}
	d.add(newAddRequest(1))
	d.remove(1)
	d.add(newAddRequest(2))
	if list := d.requireConsistent(); len(list.Items) != 1 || len(d.events()) != 0 {
		t.Errorf("%+v, %d events", list, len(d.events()))
	}
}

func TestStore_PostgresUnavailableFailsWithinTimeout(t *testing.T) {
	for name, away := range map[string]func(*localstores.Proxy){"broken": (*localstores.Proxy).Break, "hanging": (*localstores.Proxy).Hang} {
		d := newHarness(t)
		d.add(newAddRequest(1))
		away(d.proxy)
		_, err := d.Add(t.Context(), d.session, newAddRequest(2))
		if !postgres.IsUnavailable(err) {
			t.Errorf("%s: add: %v", name, err)
		}
		if _, err = d.Remove(t.Context(), d.session, newAddRequest(1).PropertyID); !postgres.IsUnavailable(err) {
			t.Errorf("%s: remove: %v", name, err)
		}
		if _, err = d.Get(t.Context(), d.session); !postgres.IsUnavailable(err) {
			t.Errorf("%s: get: %v", name, err)
		}
		d.proxy.Heal()
	}
}

func TestStoreAdd_RowAndEventAreOneTransaction(t *testing.T) {
	d := newHarness(t)
	broken := d.addedEvent(newAddRequest(1))
	broken.ID = "evt_not-an-id" // the outbox refuses it, so the row must not be there either
	if _, err := d.Add(t.Context(), d.session, newAddRequest(1), broken); err == nil {
		t.Fatal("the outbox took it")
	}
	if list, err := d.Get(t.Context(), d.session); err != nil || len(list.Items) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestStore_SessionsAreIsolated(t *testing.T) {
	d := newHarness(t)
	d.add(newAddRequest(1))
	mine := d.session
	d.session = id.New(id.Session, noon)
	d.createSession()
	if c := d.add(newAddRequest(1)); !c.Applied || c.Size != 1 {
		t.Errorf("%+v", c)
	}
	d.remove(1)
	var batch pgx.Batch
	QueueDelete(&batch, d.session)
	if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	d.session = mine
	if list := d.requireConsistent(); len(list.Items) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestStore_RejectsMalformedIDs(t *testing.T) {
	d := newHarness(t)
	for _, w := range []AddRequest{{PropertyID: "ppt_x", TenantID: newAddRequest(1).TenantID}, {PropertyID: newAddRequest(1).PropertyID, TenantID: strings.ToLower(newAddRequest(1).TenantID)}} {
		if _, err := d.Add(t.Context(), d.session, w); !errors.Is(err, id.ErrMalformed) && w.TenantID != newAddRequest(1).TenantID {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if _, err := d.Remove(t.Context(), d.session, "nothing"); !errors.Is(err, id.ErrMalformed) {
		t.Errorf("%v", err)
	}
}
