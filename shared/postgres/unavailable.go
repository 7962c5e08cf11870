package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// IsUnavailable reports whether the same operation may succeed a moment later, because Postgres
//   - was not reached or did not answer before the deadline,
//   - has no free connection or other resource, or is shutting down (SQLSTATE classes 08, 53, 57),
//   - is read-only after a failover (25006),
//   - gave up because of contention (see IsContention), or
//   - invalidated a prepared statement by a migration.
//
// After a timeout or a lost connection Postgres may have committed the transaction; in the other
// cases nothing was written. An exceeded deadline of the caller's context counts as no answer, a
// failed fetch of the access token as unreachable. IsUnavailable is false for nil, for a refused
// login, for other errors of a statement, for an absent row and for a cancelled context. Pure.
func IsUnavailable(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, context.Canceled) {
		return false
	}
	answer, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return isConnectionError(err)
	}
	const readOnly = "25006" // from the old primary after a failover
	// connection, resources, shutdown or cancelled statement
	for _, class := range []string{"08", "53", "57", readOnly} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return IsContention(err) || isStalePlan(answer)
}

// isStalePlan reports whether a migration changed the column types of a prepared statement.
// Postgres did not run the statement; pgx discards it and prepares it again at its next use. The
// check needs the routine, because code 0A000 also means an unsupported feature and the message
// text depends on the server's language.
func isStalePlan(answer *pgconn.PgError) bool {
	return answer.Code == "0A000" && answer.Routine == "RevalidateCachedQuery"
}

// IsContention reports whether Postgres rolled the transaction back because of another transaction:
// lock timeout, deadlock or serialization failure. Postgres itself is healthy. It is false for nil
// and for errors of the connection. Pure.
func IsContention(err error) bool {
	const (
		lockTimeout   = "55P03"
		deadlock      = "40P01"
		serialization = "40001"
	)
	answer, answered := errors.AsType[*pgconn.PgError](err)
	return answered && (answer.Code == lockTimeout || answer.Code == deadlock || answer.Code == serialization)
}

func isConnectionError(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, locked := errors.AsType[tokenError](err)
	_, network := errors.AsType[net.Error](err) // includes an exceeded deadline
	return connecting || locked || network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Problem wraps err in UpstreamUnavailable (503, retry after 1 s) if IsUnavailable(err), and
// returns other errors unchanged, nil and a cancelled context included. Handlers of mutations use
// it: a mutation without its record is rejected. Pure.
func Problem(err error) error {
	if !IsUnavailable(err) {
		return err
	}
	return problem.New(problem.UpstreamUnavailable, "This cannot be recorded at present. Please try again in a moment.", err).WithRetryAfter(time.Second)
}
