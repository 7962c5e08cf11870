package otlp

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is the span of one call that a request makes to something else. A nil Part does nothing: that is what everybody
// gets whose request is not traced.
type Span struct{ span trace.Span }

func startSpan(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, *Span) {
	ctx, span := FromContext(ctx).tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, &Span{span}
}

// isTraced reports whether a call made for a context is to have a span.
func isTraced(ctx context.Context) bool {
	return trace.SpanFromContext(ctx).IsRecording() && FromContext(ctx) != nil
}

// StartRedis begins a command, or a pipeline of several when size is not 0. Of a command only its name is told, never what it
// is about.
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

// StartPostgres begins a statement, or a batch of several when size is not 0. Of a statement its verb and the first of our
// tables in it are told, nothing else.
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

// summarizeSQL is the verb of a statement and the name of the first of our tables that it has.
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

// StartUpstream begins a try at a service, by its name.
func StartUpstream(ctx context.Context, service string) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	return startSpan(ctx, service, trace.SpanKindClient, attribute.String("peer.service", service))
}

// StartPublish begins a request to the broker with so many messages of a topic.
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

// End ends the part; failure is the kind of its failure, one word of ours, or "".
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
