package ledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 41_000_000, time.UTC)

func newEntry() Entry {
	return Entry{
		Handoff: handoff.Handoff{
			ID: id.New(id.Handoff, noon), GuestSessionID: id.New(id.Session, noon), TenantID: id.New(id.Tenant, noon), PropertyID: id.New(id.Property, noon),
			Dates:  stay.Dates{CheckIn: stay.Date{Year: 2028, Month: 2, Day: 29}, CheckOut: stay.Date{Year: 2028, Month: 3, Day: 1}},
			Adults: 16, Children: 2, Rooms: 8, Currency: "AFN", Locale: "ps-AF", MintedAt: noon, ExpiresAt: noon.Add(handoff.TTL), KeyID: "hmac-2026-11",
		},
		Details: Details{
			ChildrenAges: []int{0, 17},
			Campaign:     &Campaign{Source: "google", Medium: "cpc", Campaign: "spring-2026", CapturedAt: noon.Add(-time.Hour)},
		},
		Fingerprint: "sha256:" + strings.Repeat("ab", 32), IPHash: "sha256:" + strings.Repeat("cd", 32),
	}
}

func insert(t *testing.T, db *pgxpool.Pool, e Entry) error {
	t.Helper()
	var b pgx.Batch
	if err := Queue(&b, e); err != nil {
		return err
	}
	return db.SendBatch(t.Context(), &b).Close()
}

func suspendTenant(t *testing.T, db *pgxpool.Pool, tenant string) {
	t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(t.Context(), `
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'billing-overdue')`, uuid)
	if err != nil {
		t.Fatal(err)
	}
}

func TestConsume_ReturnsRecordedEntry(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	complete, bare := newEntry(), newEntry()
	bare.ChildrenAges, bare.Campaign, bare.Children = nil, nil, 0
	for name, e := range map[string]Entry{"all details": complete, "no details": bare} {
		t.Run(name, func(t *testing.T) {
			if err := insert(t, db, e); err != nil {
				t.Fatal(err)
			}
			at := noon.Add(time.Minute)
			got, err := Consume(t.Context(), db, e.ID, Attempt{Consumer: "tenant-1", At: at})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Consumed{e.Handoff, e.Details, at}, got); diff != "" {
				t.Error(diff)
			}
			status, err := FindStatus(t.Context(), db, e.ID)
			if err != nil {
				t.Fatal(err)
			}
			status.ExpiresAt = status.ExpiresAt.UTC()
			if diff := cmp.Diff(Status{e.GuestSessionID, true, at, false, e.ExpiresAt, e.Fingerprint, e.IPHash}, status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQueue_SuspendedTenantFailsTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e := newEntry()
	suspendTenant(t, db, e.TenantID)
	var b pgx.Batch
	b.Queue("CREATE TABLE something_else (id int)")
	if err := Queue(&b, e); err != nil {
		t.Fatal(err)
	}
	if err := db.SendBatch(t.Context(), &b).Close(); !IsTenantSuspended(err) {
		t.Errorf("error %v, want the one of a suspended tenant", err)
	}
	var other *string
	if err := db.QueryRow(t.Context(), "SELECT to_regclass('something_else')::text").Scan(&other); err != nil || other != nil {
		t.Errorf("error %v, table %v; want a rolled back transaction", err, other)
	}
	if _, err := FindStatus(t.Context(), db, e.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if err := insert(t, db, newEntry()); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

func TestIsTenantSuspended_FalseForOtherErrors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e := newEntry()
	if err := insert(t, db, e); err != nil {
		t.Fatal(err)
	}
	duplicate := insert(t, db, e)
	reversed := newEntry()
	reversed.Dates.CheckIn, reversed.Dates.CheckOut = reversed.Dates.CheckOut, reversed.Dates.CheckIn
	long := newEntry()
	long.ExpiresAt = long.ExpiresAt.Add(time.Millisecond)
	_, empty := db.Exec(t.Context(), "INSERT INTO bff_consumer.handoff_replay_log (id) VALUES ('bhd_01KAH9ZWV9F3M7X5Q2T8R4N6PC')")
	for name, err := range map[string]error{
		"duplicate": duplicate, "reversed dates": insert(t, db, reversed), "too long a life": insert(t, db, long), "another column": empty,
		"deadline": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil || IsTenantSuspended(err) {
				t.Errorf("error %v, want an error that is not of a suspended tenant", err)
			}
		})
	}
	for name, spoil := range map[string]func(*Entry){
		"tenant": func(e *Entry) { e.TenantID = "x" }, "property": func(e *Entry) { e.PropertyID = "x" },
		"fingerprint": func(e *Entry) { e.Fingerprint = "ab" }, "address": func(e *Entry) { e.IPHash = "sha256:xy" },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry()
			spoil(&e)
			if err := Queue(&pgx.Batch{}, e); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestConsume_ConcurrentAttemptsConsumeOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for range 10 {
		e := newEntry()
		if err := insert(t, db, e); err != nil {
			t.Fatal(err)
		}
		var consumed, refused atomic.Int64
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				_, err := Consume(t.Context(), db, e.ID, Attempt{Consumer: "tenant", KeyHash: []byte{byte(n)}, At: noon})
				switch {
				case err == nil:
					consumed.Add(1)
				case errors.Is(err, ErrNotConsumed):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if consumed.Load() != 1 || refused.Load() != 19 {
			t.Errorf("%d attempts consumed the handoff, %d were refused; want 1 and 19", consumed.Load(), refused.Load())
		}
	}
}

func TestConsume_AcceptsAndRejects(t *testing.T) {
	t.Parallel()
	db, key := pgtest.New(t), []byte("key")
	for name, c := range map[string]struct {
		before  func(*testing.T, *pgxpool.Pool, Entry)
		attempt Attempt
		ok      bool
	}{
		"not consumed":                 {nil, Attempt{"a", nil, noon}, true},
		"last millisecond":             {nil, Attempt{"a", nil, noon.Add(handoff.TTL - time.Millisecond)}, true},
		"expired":                      {nil, Attempt{"a", nil, noon.Add(handoff.TTL)}, false},
		"suspended":                    {func(t *testing.T, db *pgxpool.Pool, e Entry) { suspendTenant(t, db, e.TenantID) }, Attempt{"a", nil, noon}, false},
		"repeated":                     {consumedBefore(key), Attempt{"a", key, noon.Add(59 * time.Second)}, true},
		"repeated after 60 s":          {consumedBefore(key), Attempt{"a", key, noon.Add(time.Minute)}, false},
		"repeated by another consumer": {consumedBefore(key), Attempt{"b", key, noon}, false},
		"repeated without key":         {consumedBefore(key), Attempt{"a", nil, noon}, false},
		"without key, twice":           {consumedBefore(nil), Attempt{"a", nil, noon}, false},
		"without key, then with key":   {consumedBefore(nil), Attempt{"a", key, noon}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry()
			if err := insert(t, db, e); err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				c.before(t, db, e)
			}
			got, err := Consume(t.Context(), db, e.ID, c.attempt)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotConsumed) {
				t.Errorf("error %v, want success %t", err, c.ok)
			}
			if strings.HasPrefix(name, "repeated") && err == nil && !got.ConsumedAt.Equal(noon) {
				t.Errorf("consumed at %s, want %s", got.ConsumedAt, noon)
			}
		})
	}
	if _, err := Consume(t.Context(), db, id.New(id.Handoff, noon), Attempt{"a", nil, noon}); !errors.Is(err, ErrNotConsumed) {
		t.Errorf("unknown handoff: error %v, want ErrNotConsumed", err)
	}
}

// consumedBefore consumes the entry at noon as consumer "a" with a key.
func consumedBefore(key []byte) func(*testing.T, *pgxpool.Pool, Entry) {
	return func(t *testing.T, db *pgxpool.Pool, e Entry) {
		t.Helper()
		if _, err := Consume(t.Context(), db, e.ID, Attempt{"a", key, noon}); err != nil {
			t.Fatal(err)
		}
	}
}
