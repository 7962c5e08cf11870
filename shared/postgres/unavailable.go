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

// IsUnavailable reports whether err means that Postgres was not reached, did not answer in time, is not taking writes, is
// busy, or was migrated under a statement that had been prepared: nothing was written, and the same may work the next
// moment. An answer about the statement itself, an absent row and a caller that hung up do not.
func IsUnavailable(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, context.Canceled) {
		return false
	}
	answer, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return isConnectionError(err)
	}
	const readOnly = "25006"                                     // the old primary, after a failover
	for _, class := range []string{"08", "53", "57", readOnly} { // connection, resources, shutdown or a cancelled statement
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return IsContention(err) || isStalePlan(answer)
}

// isStalePlan knows the answer to a statement whose columns have other types than when this connection prepared it; it
// was not run. pgx forgets the statement then, and the next one is prepared anew. No other answer says this: the code
// alone means as well that Postgres cannot do something, and the text depends on the server's language.
func isStalePlan(answer *pgconn.PgError) bool {
	return answer.Code == "0A000" && answer.Routine == "RevalidateCachedQuery"
}

// IsContention reports whether err is Postgres's answer to who was in another's way for too long. It is there and well, and
// undid what it had begun.
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
	_, network := errors.AsType[net.Error](err) // a passed deadline is one
	return connecting || locked || network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Problem is err, or UpstreamUnavailable around it while Postgres is away: a mutation without its record is refused.
func Problem(err error) error {
	if !IsUnavailable(err) {
		return err
	}
	return problem.New(problem.UpstreamUnavailable, "This cannot be recorded at present. Please try again in a moment.", err).WithRetryAfter(time.Second)
}
