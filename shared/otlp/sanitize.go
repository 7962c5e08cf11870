package otlp

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// allowedAttributes is every attribute that leaves in a span. The functions of this room add no others; a library that finds our
// span in a context might.
var allowedAttributes = map[attribute.Key]bool{
	"http.request.method": true, "http.route": true, "http.response.status_code": true, "error.type": true,
	"bff.cache.state": true, "bff.degraded": true, "peer.service": true,
	"db.system.name": true, "db.operation.name": true, "db.operation.batch.size": true, "db.query.summary": true,
	"messaging.system": true, "messaging.operation.type": true, "messaging.destination.name": true,
	"messaging.batch.message_count": true,
}

// sanitizedSpan is a span without what a library put on it: other attributes, a text with its status, events and links.
type sanitizedSpan struct{ sdktrace.ReadOnlySpan }

func (s sanitizedSpan) Attributes() []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(s.ReadOnlySpan.Attributes()), func(a attribute.KeyValue) bool { return !allowedAttributes[a.Key] })
}

func (s sanitizedSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

func (sanitizedSpan) Events() []sdktrace.Event { return nil }

func (sanitizedSpan) Links() []sdktrace.Link { return nil }
