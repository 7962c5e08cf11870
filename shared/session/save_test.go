package session

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestStoreEnqueueSave_DoesNotRecreateLostSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	s := h.begin(t, first.ID)
	h.loseSessions(t) // between the read and the write
	h.exec(t, func(pipe redis.Pipeliner) {
		h.EnqueueSave(t.Context(), pipe, s, &HistoryEntry{SearchSessionID: "srs_x"})
	})
	if keys := h.rdb.Keys(t.Context(), "*"+first.ID+"*").Val(); len(keys) != 0 {
		t.Errorf("keys of the session in Redis: %q, want none", keys)
	}
}

func TestStoreEnqueueSave_KeepsLast25Searches(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	s.exists = true
	for n := range maxHistory + 3 {
		h.exec(t, func(pipe redis.Pipeliner) {
			h.EnqueueSave(t.Context(), pipe, s, &HistoryEntry{QueryHash: strings.Repeat("x", n)})
		})
	}
	history := h.rdb.LRange(t.Context(), h.keys.SessionPart(s.ID, "history"), 0, -1).Val()
	if len(history) != maxHistory || !strings.Contains(history[0], strings.Repeat("x", maxHistory+2)) {
		t.Errorf("got %d entries, newest %s; want %d with the last search first", len(history), history[0], maxHistory)
	}
}

func TestStoreEnqueueSave_StoresNoRawClientData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "", "User-Agent", firefox+" canary-agent", "Accept-Language", "fr-canary",
		"X-Client-Screen", "canary-screen", "X-Client-Timezone", "canary/zone", "X-Forwarded-For", "203.0.113.7")
	for field, value := range h.rdb.HGetAll(t.Context(), h.keys.Session(s.ID)).Val() {
		for _, canary := range []string{"canary", "Firefox", "Linux", "203.0.113"} {
			if strings.Contains(value, canary) {
				t.Errorf("field %s contains %q: %s", field, canary, value)
			}
		}
	}
}

func TestStoreEnqueueSave_StaleRequestKeepsExplicitPreference(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	stale := h.begin(t, first.ID, "Accept-Language", "fr", "X-Currency", "EUR")
	h.setPreferences(t, first.ID, "ps-AF", "AFN")
	h.rdb.ScriptFlush(t.Context())
	if diff := cmp.Diff(SaveResult{}, h.save(t, stale)); diff != "" {
		t.Errorf("result of the stale request (-want +got):\n%s", diff)
	}
	want := [4]string{"ps-AF", "user-explicit", "AFN", "user-explicit"}
	if diff := cmp.Diff(want, preferencesOf(h.begin(t, first.ID))); diff != "" {
		t.Errorf("preferences (-want +got):\n%s", diff)
	}
}

// requireChanges fails the test unless a save changed these preferences.
func requireChanges(t *testing.T, got SaveResult, locale, currency *PreferenceChange) {
	t.Helper()
	if diff := cmp.Diff([]*PreferenceChange{locale, currency}, []*PreferenceChange{got.Locale, got.Currency}); diff != "" {
		t.Errorf("changes of locale and currency (-want +got):\n%s", diff)
	}
}

func TestStoreResolveSave_ReportsEachPreferenceChangeOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "", "X-Client-Geo-Country", "AF")
	stale := h.begin(t, first.ID)
	concurrent := make([]*Session, 20)
	for i := range concurrent { // a page sends many requests at once
		concurrent[i] = h.begin(t, first.ID, "Accept-Language", "fa-IR", "X-Client-Geo-Country", "IR")
	}
	var mu sync.Mutex
	var locales, currencies []PreferenceChange
	var all sync.WaitGroup
	for _, s := range concurrent {
		all.Go(func() {
			saved := h.save(t, s)
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
	if diff := cmp.Diff([]PreferenceChange{{"en", "fa-IR", "accept-language"}}, locales); diff != "" {
		t.Errorf("locale changes of 20 requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]PreferenceChange{{"AFN", "IRR", "geo-ip"}}, currencies); diff != "" {
		t.Errorf("currency changes of 20 requests (-want +got):\n%s", diff)
	}
	requireChanges(t, h.setPreferences(t, first.ID, "fa-IR", "IRR"), nil, nil) // the values in use already
	requireChanges(t, h.setPreferences(t, first.ID, "ar", "AED"),
		&PreferenceChange{"fa-IR", "ar", "user-explicit"}, &PreferenceChange{"IRR", "AED", "user-explicit"})
	requireChanges(t, h.save(t, stale), nil, nil)

	other := h.request(t, "")
	s := h.begin(t, other.ID, "X-Currency", "GBP")
	requireChanges(t, h.save(t, s), nil, &PreferenceChange{"USD", "GBP", "user-explicit"})
}

func TestStoreEnqueueSave_ConcurrentFirstSavesMerge(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.loseSessions(t)
	slow := h.begin(t, first.ID)
	h.setTelemetry(t, h.begin(t, first.ID), false)
	h.setPreferences(t, first.ID, "ar", "AED")
	h.save(t, slow)
	s := h.begin(t, first.ID)
	if diff := cmp.Diff([4]string{"ar", "user-explicit", "AED", "user-explicit"}, preferencesOf(s)); diff != "" {
		t.Errorf("preferences (-want +got):\n%s", diff)
	}
	if s.Consent.Telemetry {
		t.Error("the slow request overwrote the opt-out")
	}
	if saved := h.save(t, slow); !saved.OptedOut {
		t.Errorf("result of the slow request: %+v, want OptedOut", saved)
	}
}
