package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// queryTracer creates a span per statement and per batch. A span has the verb, the first table and
// the type of a failure, never an argument.
type queryTracer struct{}

type spanKey struct{}

func (queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return withSpan(otlp.StartPostgres(ctx, q.SQL, 0))
}

func (queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	endSpan(ctx, q.Err)
}

func (queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	first := ""
	if len(b.Batch.QueuedQueries) > 0 {
		first = b.Batch.QueuedQueries[0].SQL
	}
	return withSpan(otlp.StartPostgres(ctx, first, b.Batch.Len()))
}

// TraceBatchQuery does nothing: the batch has one span.
func (queryTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (queryTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchEndData) {
	endSpan(ctx, b.Err)
}

func withSpan(ctx context.Context, part *otlp.Span) context.Context {
	if part == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, part)
}

// endSpan ends the span that the matching start stored in the context.
func endSpan(ctx context.Context, err error) {
	part, _ := ctx.Value(spanKey{}).(*otlp.Span)
	part.End(errorType(err))
}

// errorType returns the SQLSTATE of Postgres's error, "away" if Postgres is unavailable, "ours" for
// errors of this process, and "" without an error or for an absent row.
func errorType(err error) string {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return ""
	}
	if answer, answered := errors.AsType[*pgconn.PgError](err); answered {
		return answer.Code
	}
	if IsUnavailable(err) {
		return "away"
	}
	return "ours"
}
