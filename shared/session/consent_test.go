package session

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

func (h *harness) setTelemetry(t *testing.T, s *Session, telemetry bool) {
	t.Helper()
	if err := h.SetConsent(t.Context(), s, &telemetry, nil); err != nil {
		t.Fatal(err)
	}
	h.save(t, s)
}

func TestStoreRestoreConsent_OptOutSurvivesRedisLoss(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.setTelemetry(t, h.begin(t, first.ID), false)
	for range 2 {
		s := h.request(t, first.ID)
		requireSame(t, s, first.ID)
		if s.AllowsEvents() {
			t.Error("a session that opted out allows events")
		}
		h.loseSessions(t)
	}
	h.setTelemetry(t, h.begin(t, first.ID), true)
	h.loseSessions(t)
	if s := h.request(t, first.ID, "DNT", "1"); !s.AllowsEvents() {
		t.Error("a header overrides the guest's explicit consent")
	}
}

func TestStoreRestoreConsent_UnknownUntilPostgresAnswers(t *testing.T) {
	t.Parallel()
	h, proxy := newHarnessWithProxy(t)
	first := h.request(t, "")
	h.setTelemetry(t, h.begin(t, first.ID), false)
	h.loseSessions(t)
	proxy.Break()
	for range 3 { // the first request rebuilds and saves the session
		s := h.request(t, first.ID)
		requireSame(t, s, first.ID)
		if s.ConsentKnown() {
			t.Error("consent is known without Postgres")
		}
	}
	proxy.Heal()
	h.consentRetryAt.Store(0)
	if s := h.request(t, first.ID); s.Consent.Telemetry || s.needsConsent {
		t.Errorf("with Postgres: telemetry %t, needs consent %t; want false and false", s.Consent.Telemetry, s.needsConsent)
	}
	if got := h.rdb.HGet(t.Context(), h.keys.Session(first.ID), "consentTelemetry").Val(); got != "0" {
		t.Errorf("consentTelemetry in Redis is %q, want 0", got)
	}

	undecided := h.request(t, "")
	h.loseSessions(t)
	proxy.Break()
	h.request(t, undecided.ID)
	proxy.Heal()
	h.consentRetryAt.Store(0)
	if s := h.request(t, undecided.ID); !s.AllowsEvents() || !s.ConsentKnown() {
		t.Errorf("undecided guest: allows events %t, consent known %t; want true and true", s.AllowsEvents(), s.ConsentKnown())
	}
}

func TestStoreSetConsent_UpdatesOnlyGivenParts(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	yes, no := true, false
	id := h.request(t, "").ID
	for _, c := range []struct { // each case starts from the consent of the case before
		name                 string
		telemetry, marketing *bool
		want                 Consent
	}{
		{"marketing on", nil, &yes, Consent{true, true}}, {"telemetry off", &no, nil, Consent{false, true}},
		{"marketing off", nil, &no, Consent{false, false}}, {"both on", &yes, &yes, Consent{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := h.begin(t, id)
			if err := h.SetConsent(t.Context(), s, c.telemetry, c.marketing); err != nil {
				t.Fatal(err)
			}
			h.save(t, s)
			if diff := cmp.Diff([2]Consent{c.want, c.want}, [2]Consent{s.Consent, h.begin(t, id).Consent}); diff != "" {
				t.Errorf("consent after the call and of the next request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionReconcileConsent_PostgresOverridesRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	no := false
	s := h.begin(t, h.request(t, "").ID)
	if err := h.SetConsent(t.Context(), s, &no, nil); err != nil { // without a save to Redis
		t.Fatal(err)
	}
	s = h.begin(t, s.ID)
	var batch pgx.Batch
	var c *ConsentRecord
	QueueReadConsent(&batch, s.ID, &c)
	if err := h.db.SendBatch(t.Context(), &batch).Close(); err != nil || c == nil {
		t.Fatalf("got record %v, error %v, want a record", c, err)
	}
	s.ReconcileConsent(c)
	h.save(t, s)
	if h.begin(t, s.ID).AllowsEvents() {
		t.Error("Redis still allows events")
	}
}

func TestStoreRecordCleared_ClearedIDIsNeverReused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	late := h.begin(t, first.ID)
	clearSession := func(s *Session) {
		t.Helper()
		var batch pgx.Batch
		lock.Exclusive(&batch, s.ID)
		h.RecordCleared(&batch, s)
		if err := h.db.SendBatch(t.Context(), &batch).Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.Purge(t.Context(), h.rdb, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	clearSession(h.begin(t, first.ID))
	if saved := h.save(t, late); !saved.Cleared {
		t.Errorf("a late save: %+v, want Cleared", saved)
	}
	yes := true
	if err := h.SetConsent(t.Context(), late, &yes, nil); !errors.Is(err, ErrCleared) {
		t.Errorf("a late decision: error %v, want ErrCleared", err)
	}
	requireNew(t, h.request(t, first.ID), first.ID)
	clearSession(late) // again
	if keys := h.rdb.Keys(t.Context(), "*"+first.ID+"*").Val(); len(keys) != 1 {
		t.Errorf("keys of the session in Redis: %q, want the marker alone", keys)
	}
}

func TestStorePurge_ConcurrentFirstSaveDoesNotRecreateSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.loseSessions(t)
	lost := h.begin(t, first.ID) // the save would create the hash
	if err := h.Purge(t.Context(), h.rdb, lost.ID); err != nil {
		t.Fatal(err)
	}
	saved := h.save(t, lost)
	if exists := h.rdb.Exists(t.Context(), h.keys.Session(first.ID)).Val() == 1; !saved.Cleared || exists {
		t.Errorf("result %+v, hash exists %t; want Cleared and no hash", saved, exists)
	}
}
