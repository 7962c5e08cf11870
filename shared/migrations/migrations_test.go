package migrations_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestSchemaFile_MatchesMigratedDatabase(t *testing.T) {
	want, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	blank := pgtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), blank)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), string(want)); err != nil {
		t.Fatalf("schema.sql: %v", err)
	}
	conn.Close(t.Context())
	if diff := cmp.Diff(dumpSchema(t, blank), dumpSchema(t, pgtest.URL(t))); diff != "" {
		t.Errorf("schema.sql (-) and the migrations (+) differ:\n%s", diff)
	}
}

var dumpNoise = regexp.MustCompile(`(?m)^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog.*)?\n`)

// dumpSchema is our schema in a database as pg_dump writes it, without what differs between any two
// dumps.
func dumpSchema(t *testing.T, url string) string {
	t.Helper()
	bin, err := localstores.PostgresBin()
	if err != nil {
		t.Skip(err) // the server of TEST_DATABASE_URL is elsewhere
	}
	cmd := exec.Command(filepath.Join(bin, "pg_dump"), "--schema-only", "--schema=bff_consumer", "--no-owner", "--no-privileges", url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	return dumpNoise.ReplaceAllString(string(out), "")
}

func TestMigrationsApply_ConcurrentCallersApplyOnce(t *testing.T) {
	url := pgtest.EmptyURL(t)
	var all errgroup.Group
	for range 3 {
		all.Go(func() error { return migrations.Apply(t.Context(), url) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	files, _ := filepath.Glob("[0-9]*.sql")
	var applied int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM bff_consumer_migrations WHERE version_id > 0").Scan(&applied)
	if err != nil || applied != len(files) {
		t.Errorf("%d steps applied, want %d: %v", applied, len(files), err)
	}
}

func TestMigrationsFiles_AreForwardOnly(t *testing.T) {
	files, _ := filepath.Glob("[0-9]*.sql")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- +goose Up\n") || strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s: want one -- +goose Up at the top and no Down", file)
		}
	}
}

func TestULIDDomain_AcceptsOnlyPrefixedULIDs(t *testing.T) {
	db := pgtest.New(t)
	const valid = "evt_01H8YN7QV4D8KZ4F8Y5CK4MV3D"
	for _, c := range []struct {
		rule, id string
		ok       bool
	}{
		{"takes a prefixed ULID", valid, true},
		{"takes the largest", "evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", true},
		{"refuses one without a prefix", valid[4:], false},
		{"refuses a prefix in capitals", "EVT" + valid[3:], false},
		{"refuses lower case", strings.ToLower(valid), false},
		{"refuses letters outside the alphabet", "evt_01H8YN7QV4D8KZ4F8Y5CK4MV3U", false},
		{"refuses an overflow", "evt_81H8YN7QV4D8KZ4F8Y5CK4MV3D", false},
		{"refuses a short one", valid[:29], false},
		{"refuses a longer one", valid + "0", false},
		{"refuses a second line", valid + "\n", false},
		{"refuses nothing", "", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := db.Exec(t.Context(), "SELECT CAST($1::text AS bff_consumer.ulid)", c.id)
			refused, isRefusal := errors.AsType[*pgconn.PgError](err)
			if c.ok && err != nil || !c.ok && (!isRefusal || refused.ConstraintName != "ulid_check") {
				t.Errorf("%q: %v", c.id, err)
			}
		})
	}
}

func TestOutboxTable_IDUsesCCollation(t *testing.T) {
	var sorted bool
	err := pgtest.New(t).QueryRow(t.Context(), `
		SELECT collname = 'C'
		FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
		WHERE attrelid = 'bff_consumer.outbox'::regclass AND attname = 'id'`).Scan(&sorted)
	if err != nil || !sorted {
		t.Errorf("collation is C: %v %v", sorted, err)
	}
}
