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
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

func TestACopyThatWasLostOrMissedSomethingIsMended(t *testing.T) {
	d := newDesk(t)
	d.add(wish(1))
	d.rdb.FlushAll(t.Context())
	d.rdb.ScriptFlush(t.Context())
	d.exist()
	d.add(wish(2)) // does not fit the copy, which is gone
	d.agree()
	if _, err := d.Add(t.Context(), d.session, wish(3)); err != nil { // and dies before Redis hears of it
		t.Fatal(err)
	}
	d.add(wish(4))
	d.agree()
	if _, err := d.Add(t.Context(), d.session, wish(5)); err != nil {
		t.Fatal(err)
	}
	record, err := d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	pipe := d.rdb.Pipeline()
	d.Repair(t.Context(), pipe, d.session, record, d.copied(), true)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	d.agree()
	d.rdb.ScriptFlush(t.Context())
	d.add(wish(6))
	d.remove(6)
	d.agree()
	record, err = d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	pipe = d.rdb.Pipeline()
	d.Repair(t.Context(), pipe, d.session, record, d.copied(), true)
	if pipe.Len() != 0 {
		t.Error("a copy that is right is written again")
	}
}

func TestAnOldListDoesNotReplaceANewerCopy(t *testing.T) {
	d := newDesk(t)
	d.add(wish(1))
	old, err := d.Get(t.Context(), d.session)
	if err != nil {
		t.Fatal(err)
	}
	d.add(wish(2))
	pipe := d.rdb.Pipeline()
	d.Repair(t.Context(), pipe, d.session, old, nil, false)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	d.agree()
}

func TestAClearedSessionTakesNothing(t *testing.T) {
	d := newDesk(t)
	d.add(wish(1))
	before := len(d.events())
	_, err := d.db.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, true, false, now(), now())`, d.session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(t.Context(), d.session, wish(2), d.added(wish(2))); !errors.Is(err, session.ErrCleared) {
		t.Errorf("add: %v", err)
	}
	if _, err := d.Remove(t.Context(), d.session, wish(1).PropertyID, d.removed(wish(1).PropertyID)); !errors.Is(err, session.ErrCleared) {
		t.Errorf("remove: %v", err)
	}
	if n := len(d.events()); n != before {
		t.Errorf("%d events more", n-before)
	}
	d.rdb.Del(t.Context(), d.keys.Session(d.session), d.list(d.session))
	if _, err := d.Get(t.Context(), d.session); !errors.Is(err, session.ErrCleared) {
		t.Errorf("get: %v", err)
	}
	pipe := d.rdb.Pipeline() // of a list that was read before
	d.Repair(t.Context(), pipe, d.session, List{}, nil, false)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	if keys := d.rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("back in Redis: %v", keys)
	}
}

func TestARefusalSilencesTheListAndNothingElse(t *testing.T) {
	d := newDesk(t)
	_, err := d.db.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, now())`, d.session)
	if err != nil {
		t.Fatal(err)
	}
	d.add(wish(1))
	d.remove(1)
	d.add(wish(2))
	if list := d.agree(); len(list.Items) != 1 || len(d.events()) != 0 {
		t.Errorf("%+v, %d events", list, len(d.events()))
	}
}

func TestPostgresAwayFailsWithinItsTime(t *testing.T) {
	for name, away := range map[string]func(*stores.Proxy){"broken": (*stores.Proxy).Break, "hanging": (*stores.Proxy).Hang} {
		d := newDesk(t)
		d.add(wish(1))
		away(d.away)
		_, err := d.Add(t.Context(), d.session, wish(2))
		if !postgres.IsAway(err) {
			t.Errorf("%s: add: %v", name, err)
		}
		if _, err = d.Remove(t.Context(), d.session, wish(1).PropertyID); !postgres.IsAway(err) {
			t.Errorf("%s: remove: %v", name, err)
		}
		if _, err = d.Get(t.Context(), d.session); !postgres.IsAway(err) {
			t.Errorf("%s: get: %v", name, err)
		}
		d.away.Heal()
	}
}

func TestAMutationIsOneTransaction(t *testing.T) {
	d := newDesk(t)
	broken := d.added(wish(1))
	broken.ID = "evt_not-an-id" // the outbox refuses it, so the row must not be there either
	if _, err := d.Add(t.Context(), d.session, wish(1), broken); err == nil {
		t.Fatal("the outbox took it")
	}
	if list, err := d.Get(t.Context(), d.session); err != nil || len(list.Items) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestOtherSessionsAreNotTouched(t *testing.T) {
	d := newDesk(t)
	d.add(wish(1))
	mine := d.session
	d.session = id.New(id.Session, noon)
	d.exist()
	if c := d.add(wish(1)); !c.Done || c.Size != 1 {
		t.Errorf("%+v", c)
	}
	d.remove(1)
	var batch pgx.Batch
	Forget(&batch, d.session)
	if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	d.session = mine
	if list := d.agree(); len(list.Items) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestIdsAreCheckedBeforeAnythingElse(t *testing.T) {
	d := newDesk(t)
	for _, w := range []Wish{{PropertyID: "ppt_x", TenantID: wish(1).TenantID}, {PropertyID: wish(1).PropertyID, TenantID: strings.ToLower(wish(1).TenantID)}} {
		if _, err := d.Add(t.Context(), d.session, w); !errors.Is(err, id.ErrMalformed) && w.TenantID != wish(1).TenantID {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if _, err := d.Remove(t.Context(), d.session, "nothing"); !errors.Is(err, id.ErrMalformed) {
		t.Errorf("%v", err)
	}
}
