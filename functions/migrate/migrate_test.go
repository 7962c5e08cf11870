package migrate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/deptest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestDeps_MatchReviewedList(t *testing.T) {
	t.Parallel()
	deptest.Golden(t, "melmastoon.ghasi.io/bff-consumer/shared/migrations", deptest.GRPC)
}

// callMigrate builds the function and sends a request.
func callMigrate(t *testing.T, e environment) (Report, error) {
	t.Helper()
	serve, err := build(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	var report Report
	err = serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/internal/migrate", nil))
	if err == nil {
		err = json.Unmarshal(w.Body.Bytes(), &report)
	}
	return report, err
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

func TestMigrateServe_AppliesSchemaAndGrants(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn := connect(t, url)
	// Roles belong to the server. The name of the test's own database makes the role unique.
	user := conn.Config().Database + "@project.iam"
	role := pgx.Identifier{user}.Sanitize()
	if _, err := conn.Exec(t.Context(), "CREATE ROLE "+role); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, sql := range []string{"RESET ROLE", "DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Error(err)
			}
		}
	}()
	want := Report{Newest: migrations.Newest(), Missing: []string{"nobody@project.iam"}}
	for range 2 {
		got, err := callMigrate(t, environment{Postgres: postgres.Config{URL: url}, Users: []string{user, "nobody@project.iam"}})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("got the error %v; report (-want +got):\n%s", err, diff)
		}
	}
	if _, err := conn.Exec(t.Context(), "SET ROLE "+role); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT count(*) FROM bff_consumer.outbox",
		"DELETE FROM bff_consumer.wishlist_anonymous",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: got %v, want no error", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "DROP TABLE bff_consumer.outbox"); err == nil {
		t.Error("DROP TABLE by a function's user: got no error")
	}
}

func TestMigrateServe_ConcurrentCallsMigrateOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var all errgroup.Group
	for range 3 {
		all.Go(func() error {
			_, err := callMigrate(t, environment{Postgres: postgres.Config{URL: url}})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateServe_FailsWithoutDatabase(t *testing.T) {
	t.Parallel()
	_, err := callMigrate(t, environment{Postgres: postgres.Config{URL: "postgres://nobody@127.0.0.1:1/nothing"}})
	if err == nil || !strings.Contains(err.Error(), "migrations:") {
		t.Errorf("got %v, want an error of the migrations", err)
	}
}
