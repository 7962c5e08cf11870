package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestIsUnavailable_ClassifiesErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":              {nil, false},
		"an absent row":        {pgx.ErrNoRows, false},
		"a caller that left":   {context.Canceled, false},
		"a broken rule":        {&pgconn.PgError{Code: "23505"}, false},
		"a wrong statement":    {&pgconn.PgError{Code: "42601"}, false},
		"a mistake of ours":    {errors.New("cannot encode"), false},
		"a passed deadline":    {fmt.Errorf("mint: %w", context.DeadlineExceeded), true},
		"shutting down":        {&pgconn.PgError{Code: "57P01"}, true},
		"starting":             {&pgconn.PgError{Code: "57P03"}, true},
		"too many connections": {&pgconn.PgError{Code: "53300"}, true},
		"an outdated plan":     {&pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, true},
		"what it cannot do":    {&pgconn.PgError{Code: "0A000", Routine: "transformFromClauseItem"}, false},
		"a standby":            {&pgconn.PgError{Code: "25006"}, true},
		"a lock not granted":   {fmt.Errorf("add: %w", &pgconn.PgError{Code: "55P03"}), true},
		"a deadlock":           {&pgconn.PgError{Code: "40P01"}, true},
		"no serial order":      {&pgconn.PgError{Code: "40001"}, true},
		"an aborted block":     {&pgconn.PgError{Code: "25P02"}, false},
	} {
		if got := IsUnavailable(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if p, is := errors.AsType[*problem.Problem](Problem(c.err)); is != c.want || is && p.Kind != problem.UpstreamUnavailable {
			t.Errorf("%s: %v", name, Problem(c.err))
		}
	}
}

func TestIsUnavailable_CoversBrokenConnections(t *testing.T) {
	url, proxy := pgtest.ProxiedURL(t)
	pool, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := pool.Exec(ctx, "SELECT 1")
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	proxy.Break()
	for range 3 { // the connection that was there, and new ones
		if err := ask(); !IsUnavailable(err) {
			t.Errorf("%v", err)
		}
	}
	proxy.Heal()
	if err := ask(); err != nil {
		t.Errorf("a healed database: %v", err)
	}
}
