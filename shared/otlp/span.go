package otlp

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is the client span of one call to a store, an upstream or Pub/Sub. A nil *Span is valid and
// does nothing; the Start functions return (ctx, nil) in a request that is not sampled, has no
// telemetry or has sent the response headers. Starting and ending a span costs CPU and memory only,
// never fails, and works with a cancelled ctx.
type Span struct{ span trace.Span }

func startSpan(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, *Span) {
	ctx, span := FromContext(ctx).tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, &Span{span}
}

// isTraced reports whether ctx belongs to a sampled request.
func isTraced(ctx context.Context) bool {
	return trace.SpanFromContext(ctx).IsRecording() && FromContext(ctx) != nil
}

// StartRedis starts the span of one command, or of a pipeline of size commands if size is above 0.
// The span has the command's name, never its arguments. A span that is not ended is not exported.
// In a request that is not sampled or has no telemetry the result is (ctx, nil). CPU and memory
// only; StartRedis never fails.
func StartRedis(ctx context.Context, command string, size int) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	attrs := []attribute.KeyValue{attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", command)}
	if size > 0 {
		attrs = append(attrs, attribute.Int("db.operation.batch.size", size))
	}
	return startSpan(ctx, command, trace.SpanKindClient, attrs...)
}

// StartPostgres starts the span of one statement, or of a batch of size statements if size is above
// 0. The span has the statement's verb, OTHER for an unknown verb, and its first table of this
// service, nothing else. In a request that is not sampled or has no telemetry the result is (ctx,
// nil). CPU and memory only; StartPostgres never fails.
func StartPostgres(ctx context.Context, sql string, size int) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	operation, table := summarizeSQL(sql)
	name := strings.TrimSpace(operation + " " + table)
	attrs := []attribute.KeyValue{attribute.String("db.system.name", "postgresql"), attribute.String("db.query.summary", name)}
	if size > 0 {
		attrs = append(attrs, attribute.Int("db.operation.batch.size", size))
		name = strings.TrimSpace("BATCH " + table)
	}
	return startSpan(ctx, name, trace.SpanKindClient, attrs...)
}

const schemaPrefix = "bff_consumer."

var sqlVerbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "COMMIT", "ROLLBACK", "COPY", "LOCK", "SET"}

// summarizeSQL returns the verb of a statement, OTHER for an unknown verb, and the first table of
// this service's schema without the schema name.
func summarizeSQL(sql string) (verb, table string) {
	sql = strings.TrimSpace(sql)
	verb = "OTHER"
	for _, v := range sqlVerbs {
		if len(sql) >= len(v) && strings.EqualFold(sql[:len(v)], v) {
			verb = v
			break
		}
	}
	_, rest, found := strings.Cut(sql, schemaPrefix)
	if !found {
		return verb, ""
	}
	end := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') })
	if end < 0 {
		end = len(rest)
	}
	return verb, rest[:end]
}

// StartUpstream starts the span of one attempt at an upstream service. In a request that is not
// sampled or has no telemetry the result is (ctx, nil). CPU and memory only; StartUpstream never
// fails.
func StartUpstream(ctx context.Context, service string) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	return startSpan(ctx, service, trace.SpanKindClient, attribute.String("peer.service", service))
}

// StartPublish starts the span of one publish request with messages of one topic. In a request that
// is not sampled or has no telemetry the result is (ctx, nil). CPU and memory only; StartPublish
// never fails.
func StartPublish(ctx context.Context, topic string, messages int) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	return startSpan(ctx, "publish "+topic, trace.SpanKindProducer,
		attribute.String("messaging.system", "gcp_pubsub"),
		attribute.String("messaging.operation.type", "send"),
		attribute.String("messaging.destination.name", topic),
		attribute.Int("messaging.batch.message_count", messages))
}

// End ends the span and queues it for export. failure is the type of a failure, a word from a fixed
// set, or "". A second End does nothing. End takes a mutex of the Recorder for a moment and waits
// for no export; a span is dropped and counted if 4,096 wait, and the 512th waiting span starts an
// export in the background.
func (p *Span) End(failure string) {
	if p == nil {
		return
	}
	if failure != "" {
		p.span.SetAttributes(attribute.String("error.type", failure))
		p.span.SetStatus(codes.Error, "")
	}
	p.span.End()
}
