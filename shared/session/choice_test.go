package session

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/turn"
)

func (d *desk) decide(t *testing.T, s *Session, telemetry bool) {
	t.Helper()
	if err := d.Decide(t.Context(), s, &telemetry, nil); err != nil {
		t.Fatal(err)
	}
	d.save(t, s)
}

func TestARefusalSurvivesTheLossOfRedis(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.decide(t, d.read(t, first.ID), false)
	for range 2 {
		if s := d.visit(t, first.ID); s.ID != first.ID || s.Emits() {
			t.Fatalf("%+v", s)
		}
		d.rdb.FlushAll(context.Background())
	}
	d.decide(t, d.read(t, first.ID), true)
	d.rdb.FlushAll(context.Background())
	if s := d.visit(t, first.ID, "DNT", "1"); !s.Emits() {
		t.Error("what a guest said in so many words is less than a header")
	}
}

func TestNobodySpeaksForALostSessionUntilPostgresWasAsked(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.decide(t, d.read(t, first.ID), false)
	d.rdb.FlushAll(context.Background())
	d.away.Break()
	for range 3 { // rebuilt, saved and read again
		if s := d.visit(t, first.ID); s.ID != first.ID || s.Known() {
			t.Fatalf("while Postgres is away: %+v", s)
		}
	}
	d.away.Heal()
	d.asking.Store(0)
	if s := d.visit(t, first.ID); s.Consent.Telemetry || s.lost {
		t.Errorf("then: %+v", s)
	}
	if got := d.rdb.HGet(t.Context(), d.keys.Session(first.ID), "consentTelemetry").Val(); got != "0" {
		t.Errorf("in Redis: %s", got)
	}
	other := d.visit(t, "")
	d.rdb.FlushAll(context.Background())
	d.away.Break()
	d.visit(t, other.ID)
	d.away.Heal()
	d.asking.Store(0)
	if s := d.visit(t, other.ID); !s.Emits() || !s.Known() {
		t.Error("who never refused is not heard again")
	}
}

func TestAGuestDecidesOneThingAtATime(t *testing.T) {
	d := newDesk(t)
	yes, no := true, false
	s := d.visit(t, "")
	for _, c := range []struct {
		telemetry, marketing *bool
		want                 Consent
	}{
		{nil, &yes, Consent{true, true}}, {&no, nil, Consent{false, true}}, {nil, &no, Consent{false, false}}, {&yes, &yes, Consent{true, true}},
	} {
		s = d.read(t, s.ID)
		if err := d.Decide(t.Context(), s, c.telemetry, c.marketing); err != nil || s.Consent != c.want {
			t.Errorf("%+v, %v, want %+v", s.Consent, err, c.want)
		}
		d.save(t, s)
		if again := d.read(t, s.ID); again.Consent != c.want {
			t.Errorf("read again: %+v, want %+v", again.Consent, c.want)
		}
	}
}

func TestTheRecordCorrectsRedis(t *testing.T) {
	d := newDesk(t)
	no := false
	s := d.read(t, d.visit(t, "").ID)
	if err := d.Decide(t.Context(), s, &no, nil); err != nil { // and Redis does not hear of it
		t.Fatal(err)
	}
	s = d.read(t, s.ID)
	var batch pgx.Batch
	var c *Choice
	ReadChoice(&batch, s.ID, &c)
	if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil || c == nil {
		t.Fatal(c, err)
	}
	s.Correct(c)
	d.save(t, s)
	if d.read(t, s.ID).Emits() {
		t.Error("Redis still says yes")
	}
}

func TestAClearedIdIsNeverUsedAgain(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	late := d.read(t, first.ID)
	bury := func(s *Session) {
		var batch pgx.Batch
		turn.Lock(&batch, s.ID)
		d.Bury(&batch, s)
		if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Purge(t.Context(), d.rdb, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	bury(d.read(t, first.ID))
	if saved := d.save(t, late); !saved.Gone {
		t.Error("a late write revived it")
	}
	yes := true
	if err := d.Decide(t.Context(), late, &yes, nil); !errors.Is(err, ErrCleared) {
		t.Errorf("a late decision: %v", err)
	}
	again := d.visit(t, first.ID)
	if !again.New || again.ID == first.ID {
		t.Errorf("the cookie still works: %+v", again)
	}
	bury(late) // twice is once
	if keys := d.rdb.Keys(t.Context(), "*"+first.ID+"*").Val(); len(keys) != 1 {
		t.Errorf("left in Redis: %v", keys)
	}
}

func TestAFirstVisitThatRunsBesideAClearDoesNotReviveTheSession(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.rdb.FlushAll(t.Context())
	lost := d.read(t, first.ID) // would create the hash
	if err := d.Purge(t.Context(), d.rdb, lost.ID); err != nil {
		t.Fatal(err)
	}
	if saved := d.save(t, lost); !saved.Gone || d.rdb.Exists(t.Context(), d.keys.Session(first.ID)).Val() != 0 {
		t.Errorf("%+v", saved)
	}
}

func TestAChoiceStandsAgainstVisitsThatBeganBeforeIt(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	stale := d.read(t, first.ID, "Accept-Language", "fr", "X-Currency", "EUR")
	d.choose(t, first.ID, "ps-AF", "AFN")
	d.rdb.ScriptFlush(t.Context())
	if saved := d.save(t, stale); saved.Locale != nil || saved.Currency != nil {
		t.Errorf("the stale visit says it changed %+v", saved)
	}
	if s := d.read(t, first.ID); s.Locale != "ps-AF" || s.LocaleSource != Explicit || s.Currency != "AFN" {
		t.Errorf("speaks %s (%s), pays in %s", s.Locale, s.LocaleSource, s.Currency)
	}
}

func TestAChangeIsToldByOneVisitOnly(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "", "X-Client-Geo-Country", "AF")
	stale := d.read(t, first.ID)
	var mu sync.Mutex
	var locales, currencies []Change
	var all sync.WaitGroup
	begun := make([]*Session, 20)
	for i := range begun { // a page that loads asks for many things at once
		begun[i] = d.read(t, first.ID, "Accept-Language", "fa-IR", "X-Client-Geo-Country", "IR")
	}
	for _, s := range begun {
		all.Go(func() {
			saved := d.save(t, s)
			mu.Lock()
			defer mu.Unlock()
			if saved.Locale != nil {
				locales = append(locales, *saved.Locale)
			}
			if saved.Currency != nil {
				currencies = append(currencies, *saved.Currency)
			}
		})
	}
	all.Wait()
	if len(locales) != 1 || locales[0] != (Change{"en", "fa-IR", "accept-language"}) {
		t.Errorf("%+v", locales)
	}
	if len(currencies) != 1 || currencies[0] != (Change{"AFN", "IRR", "geo-ip"}) {
		t.Errorf("%+v", currencies)
	}
	if saved := d.choose(t, first.ID, "fa-IR", "IRR"); saved.Locale != nil || saved.Currency != nil {
		t.Errorf("choosing what is already in use is no change: %+v", saved)
	}
	if saved := d.choose(t, first.ID, "ar", "AED"); *saved.Locale != (Change{"fa-IR", "ar", "user-explicit"}) || *saved.Currency != (Change{"IRR", "AED", "user-explicit"}) {
		t.Errorf("%+v", saved)
	}
	if saved := d.save(t, stale); saved.Locale != nil {
		t.Errorf("%+v", saved)
	}
	guest := d.visit(t, "")
	s := d.read(t, guest.ID, "X-Currency", "GBP")
	if saved := d.save(t, s); *saved.Currency != (Change{"USD", "GBP", "user-explicit"}) {
		t.Errorf("%+v", saved.Currency)
	}
}

func TestFirstVisitsSideBySideDoNotUndoEachOther(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.rdb.FlushAll(t.Context())
	slow := d.read(t, first.ID)
	d.decide(t, d.read(t, first.ID), false)
	d.choose(t, first.ID, "ar", "AED")
	d.save(t, slow)
	if s := d.read(t, first.ID); s.Consent.Telemetry || s.Locale != "ar" || s.Currency != "AED" {
		t.Errorf("%+v", s)
	}
	if saved := d.save(t, slow); !saved.Silent {
		t.Error("the slow one is not told of the refusal")
	}
}
