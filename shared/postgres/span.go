package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

// spans tells a trace of statements and batches: their verb and table and how they ended, no argument.
type spans struct{}

type partKey struct{}

func (spans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return begun(telemetry.Postgres(ctx, q.SQL, 0))
}

func (spans) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	ended(ctx, q.Err)
}

func (spans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	first := ""
	if len(b.Batch.QueuedQueries) > 0 {
		first = b.Batch.QueuedQueries[0].SQL
	}
	return begun(telemetry.Postgres(ctx, first, b.Batch.Len()))
}

// TraceBatchQuery has nothing to add.
func (spans) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (spans) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchEndData) {
	ended(ctx, b.Err)
}

func begun(ctx context.Context, part *telemetry.Part) context.Context {
	if part == nil {
		return ctx
	}
	return context.WithValue(ctx, partKey{}, part)
}

// ended closes the part of the innermost call; pgx gives back the context that the start made.
func ended(ctx context.Context, err error) {
	part, _ := ctx.Value(partKey{}).(*telemetry.Part)
	part.End(failure(err))
}

// failure is the code of Postgres's answer, or a word.
func failure(err error) string {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return ""
	}
	if answer, answered := errors.AsType[*pgconn.PgError](err); answered {
		return answer.Code
	}
	if IsAway(err) {
		return "away"
	}
	return "ours"
}
