package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// queryTracer tells a trace of statements and batches: their verb and table and how they ended, no argument.
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

// TraceBatchQuery has nothing to add.
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

// endSpan closes the part of the innermost call; pgx gives back the context that the start made.
func endSpan(ctx context.Context, err error) {
	part, _ := ctx.Value(spanKey{}).(*otlp.Span)
	part.End(errorType(err))
}

// errorType is the code of Postgres's answer, or a word.
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
