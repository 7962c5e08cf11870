package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPgtestNew_GivesEachTestItsOwnMigratedDatabase(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := New(t)
			var before int
			if err := db.QueryRow(t.Context(), "SELECT count(*) FROM bff_consumer.tenant_suspended_cache").Scan(&before); err != nil {
				t.Fatal(err)
			}
			if before != 0 {
				t.Errorf("%d rows of another test", before)
			}
			if _, err := db.Exec(t.Context(), `
				INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
				VALUES (gen_random_uuid(), now(), 'test')`); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPgtestEmptyURL_HasNoSchema(t *testing.T) {
	t.Parallel()
	if err := execute(t.Context(), EmptyURL(t), "CREATE SCHEMA bff_consumer"); err != nil {
		t.Error(err)
	}
}

func TestPgtestProxiedURL_HangsBreaksAndHeals(t *testing.T) {
	t.Parallel()
	url, proxy := ProxiedURL(t)
	if err := execute(t.Context(), url, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	proxy.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil || ctx.Err() == nil {
		t.Errorf("hung: %v, want the deadline", err)
	}
	proxy.Break()
	if err := execute(t.Context(), url, "SELECT 1"); err == nil {
		t.Error("answers while broken")
	}
	proxy.Heal()
	if err := execute(t.Context(), url, "SELECT 1"); err != nil {
		t.Errorf("healed: %v", err)
	}
}
