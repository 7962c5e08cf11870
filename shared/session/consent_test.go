package session

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

func (d *harness) setTelemetry(t *testing.T, s *Session, telemetry bool) {
	t.Helper()
	if err := d.SetConsent(t.Context(), s, &telemetry, nil); err != nil {
		t.Fatal(err)
	}
	d.save(t, s)
}

func TestStoreRestoreConsent_OptOutSurvivesRedisLoss(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.setTelemetry(t, d.begin(t, first.ID), false)
	for range 2 {
		if s := d.request(t, first.ID); s.ID != first.ID || s.AllowsEvents() {
			t.Fatalf("%+v", s)
		}
		d.rdb.FlushAll(context.Background())
	}
	d.setTelemetry(t, d.begin(t, first.ID), true)
	d.rdb.FlushAll(context.Background())
	if s := d.request(t, first.ID, "DNT", "1"); !s.AllowsEvents() {
		t.Error("what a guest said in so many words is less than a header")
	}
}

func TestStoreRestoreConsent_UnknownUntilPostgresAnswers(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.setTelemetry(t, d.begin(t, first.ID), false)
	d.rdb.FlushAll(context.Background())
	d.proxy.Break()
	for range 3 { // rebuilt, saved and read again
		if s := d.request(t, first.ID); s.ID != first.ID || s.ConsentKnown() {
			t.Fatalf("while Postgres is away: %+v", s)
		}
	}
	d.proxy.Heal()
	d.consentRetryAt.Store(0)
	if s := d.request(t, first.ID); s.Consent.Telemetry || s.needsConsent {
		t.Errorf("then: %+v", s)
	}
	if got := d.rdb.HGet(t.Context(), d.keys.Session(first.ID), "consentTelemetry").Val(); got != "0" {
		t.Errorf("in Redis: %s", got)
	}
	other := d.request(t, "")
	d.rdb.FlushAll(context.Background())
	d.proxy.Break()
	d.request(t, other.ID)
	d.proxy.Heal()
	d.consentRetryAt.Store(0)
	if s := d.request(t, other.ID); !s.AllowsEvents() || !s.ConsentKnown() {
		t.Error("who never refused is not heard again")
	}
}

func TestStoreSetConsent_UpdatesOnlyGivenParts(t *testing.T) {
	d := newHarness(t)
	yes, no := true, false
	s := d.request(t, "")
	for _, c := range []struct {
		telemetry, marketing *bool
		want                 Consent
	}{
		{nil, &yes, Consent{true, true}}, {&no, nil, Consent{false, true}}, {nil, &no, Consent{false, false}}, {&yes, &yes, Consent{true, true}},
	} {
		s = d.begin(t, s.ID)
		if err := d.SetConsent(t.Context(), s, c.telemetry, c.marketing); err != nil || s.Consent != c.want {
			t.Errorf("%+v, %v, want %+v", s.Consent, err, c.want)
		}
		d.save(t, s)
		if again := d.begin(t, s.ID); again.Consent != c.want {
			t.Errorf("read again: %+v, want %+v", again.Consent, c.want)
		}
	}
}

func TestSessionReconcileConsent_PostgresOverridesRedis(t *testing.T) {
	d := newHarness(t)
	no := false
	s := d.begin(t, d.request(t, "").ID)
	if err := d.SetConsent(t.Context(), s, &no, nil); err != nil { // and Redis does not hear of it
		t.Fatal(err)
	}
	s = d.begin(t, s.ID)
	var batch pgx.Batch
	var c *ConsentRecord
	QueueReadConsent(&batch, s.ID, &c)
	if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil || c == nil {
		t.Fatal(c, err)
	}
	s.ReconcileConsent(c)
	d.save(t, s)
	if d.begin(t, s.ID).AllowsEvents() {
		t.Error("Redis still says yes")
	}
}

func TestStoreRecordCleared_ClearedIDIsNeverReused(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	late := d.begin(t, first.ID)
	bury := func(s *Session) {
		var batch pgx.Batch
		lock.Exclusive(&batch, s.ID)
		d.RecordCleared(&batch, s)
		if err := d.db.SendBatch(t.Context(), &batch).Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Purge(t.Context(), d.rdb, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	bury(d.begin(t, first.ID))
	if saved := d.save(t, late); !saved.Cleared {
		t.Error("a late write revived it")
	}
	yes := true
	if err := d.SetConsent(t.Context(), late, &yes, nil); !errors.Is(err, ErrCleared) {
		t.Errorf("a late decision: %v", err)
	}
	again := d.request(t, first.ID)
	if !again.New || again.ID == first.ID {
		t.Errorf("the cookie still works: %+v", again)
	}
	bury(late) // twice is once
	if keys := d.rdb.Keys(t.Context(), "*"+first.ID+"*").Val(); len(keys) != 1 {
		t.Errorf("left in Redis: %v", keys)
	}
}

func TestStorePurge_ConcurrentFirstSaveDoesNotRecreateSession(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.rdb.FlushAll(t.Context())
	lost := d.begin(t, first.ID) // would create the hash
	if err := d.Purge(t.Context(), d.rdb, lost.ID); err != nil {
		t.Fatal(err)
	}
	if saved := d.save(t, lost); !saved.Cleared || d.rdb.Exists(t.Context(), d.keys.Session(first.ID)).Val() != 0 {
		t.Errorf("%+v", saved)
	}
}

func TestStoreEnqueueSave_StaleRequestKeepsExplicitPreference(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	stale := d.begin(t, first.ID, "Accept-Language", "fr", "X-Currency", "EUR")
	d.setPreferences(t, first.ID, "ps-AF", "AFN")
	d.rdb.ScriptFlush(t.Context())
	if saved := d.save(t, stale); saved.Locale != nil || saved.Currency != nil {
		t.Errorf("the stale visit says it changed %+v", saved)
	}
	if s := d.begin(t, first.ID); s.Locale != "ps-AF" || s.LocaleSource != SourceExplicit || s.Currency != "AFN" {
		t.Errorf("speaks %s (%s), pays in %s", s.Locale, s.LocaleSource, s.Currency)
	}
}

func TestStoreResolveSave_ReportsEachPreferenceChangeOnce(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "", "X-Client-Geo-Country", "AF")
	stale := d.begin(t, first.ID)
	var mu sync.Mutex
	var locales, currencies []PreferenceChange
	var all sync.WaitGroup
	begun := make([]*Session, 20)
	for i := range begun { // a page that loads asks for many things at once
		begun[i] = d.begin(t, first.ID, "Accept-Language", "fa-IR", "X-Client-Geo-Country", "IR")
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
	if len(locales) != 1 || locales[0] != (PreferenceChange{"en", "fa-IR", "accept-language"}) {
		t.Errorf("%+v", locales)
	}
	if len(currencies) != 1 || currencies[0] != (PreferenceChange{"AFN", "IRR", "geo-ip"}) {
		t.Errorf("%+v", currencies)
	}
	if saved := d.setPreferences(t, first.ID, "fa-IR", "IRR"); saved.Locale != nil || saved.Currency != nil {
		t.Errorf("choosing what is already in use is no change: %+v", saved)
	}
	if saved := d.setPreferences(t, first.ID, "ar", "AED"); *saved.Locale != (PreferenceChange{"fa-IR", "ar", "user-explicit"}) || *saved.Currency != (PreferenceChange{"IRR", "AED", "user-explicit"}) {
		t.Errorf("%+v", saved)
	}
	if saved := d.save(t, stale); saved.Locale != nil {
		t.Errorf("%+v", saved)
	}
	guest := d.request(t, "")
	s := d.begin(t, guest.ID, "X-Currency", "GBP")
	if saved := d.save(t, s); *saved.Currency != (PreferenceChange{"USD", "GBP", "user-explicit"}) {
		t.Errorf("%+v", saved.Currency)
	}
}

func TestStoreEnqueueSave_ConcurrentFirstSavesMerge(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.rdb.FlushAll(t.Context())
	slow := d.begin(t, first.ID)
	d.setTelemetry(t, d.begin(t, first.ID), false)
	d.setPreferences(t, first.ID, "ar", "AED")
	d.save(t, slow)
	if s := d.begin(t, first.ID); s.Consent.Telemetry || s.Locale != "ar" || s.Currency != "AED" {
		t.Errorf("%+v", s)
	}
	if saved := d.save(t, slow); !saved.OptedOut {
		t.Error("the slow one is not told of the refusal")
	}
}
