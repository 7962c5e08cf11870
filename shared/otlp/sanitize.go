package otlp

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// allowedAttributes lists the attributes that an exported span may have. This package adds no
// others, but a library that finds the span in a context could.
var allowedAttributes = map[attribute.Key]bool{
	"http.request.method": true, "http.route": true, "http.response.status_code": true, "error.type": true,
	"bff.cache.state": true, "bff.degraded": true, "peer.service": true,
	"db.system.name": true, "db.operation.name": true, "db.operation.batch.size": true, "db.query.summary": true,
	"messaging.system": true, "messaging.operation.type": true, "messaging.destination.name": true,
	"messaging.batch.message_count": true,
}

// sanitizedSpan hides the additions of libraries to a span: attributes outside allowedAttributes,
// the status text, events and links.
type sanitizedSpan struct{ sdktrace.ReadOnlySpan }

func (s sanitizedSpan) Attributes() []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(s.ReadOnlySpan.Attributes()), func(a attribute.KeyValue) bool { return !allowedAttributes[a.Key] })
}

func (s sanitizedSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

func (sanitizedSpan) Events() []sdktrace.Event { return nil }

func (sanitizedSpan) Links() []sdktrace.Link { return nil }
