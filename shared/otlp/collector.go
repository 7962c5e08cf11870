package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxResponseBody bounds the bytes read of a collector's response; a response has some hundred.
const maxResponseBody = 64 << 10

// collector sends spans and metrics to an OTLP endpoint over HTTP. It tries each request once: data
// that the collector does not take is lost.
type collector struct {
	endpoint string // base URL
	client   *http.Client
}

// ExportSpans sends at least one span, in a single request, and panics on an empty slice.
// ExportSpans returns an error if the collector does not answer before ctx ends, or answers with a
// status outside 2xx. Spans rejected within a 2xx response are logged and no error. A request for
// Google's collector may first fetch a token.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return c.post(ctx, "/v1/traces", encodeSpans(spans))
}

// Export sends metrics. Export costs and fails as ExportSpans does, and fails for metrics rejected
// by encodeMetrics.
func (c *collector) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	request, err := encodeMetrics(data)
	if err != nil {
		return err
	}
	return c.post(ctx, "/v1/metrics", request)
}

// post sends one request. It logs the number of spans or data points that the collector rejects of
// a request which the collector otherwise takes: OTLP forbids to send them again.
func (c *collector) post(ctx context.Context, path string, request protoBuffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+path, bytes.NewReader(request))
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "bff-consumer")
	res, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	defer res.Body.Close()
	response, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBody))
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return fmt.Errorf("otlp: the collector answers %s with %d", path, res.StatusCode)
	case err != nil:
		return fmt.Errorf("otlp: %w", err)
	}
	if rejected, reason := partialSuccess(response); rejected > 0 {
		logError(fmt.Errorf("the collector rejected %d items of %s: %s", rejected, path, reason))
	}
	return nil
}

// partialSuccess reads the number of rejected items and the reason from a response. Both messages
// of OTLP, for traces and for metrics, have the partial success as field 1, and in it the number as
// field 1 and the reason as field 2. A malformed response counts as success.
func partialSuccess(response []byte) (rejected int64, reason string) {
	_, partial := findField(response, 1)
	count, _ := findField(partial, 1)
	_, text := findField(partial, 2)
	return int64(count), string(text)
}

// findField returns the first field of a number, a varint or bytes.
func findField(message []byte, number protowire.Number) (varint uint64, value []byte) {
	for len(message) > 0 {
		num, kind, tagSize := protowire.ConsumeTag(message)
		if tagSize < 0 {
			return 0, nil
		}
		message = message[tagSize:]
		size := protowire.ConsumeFieldValue(num, kind, message)
		switch {
		case size < 0:
			return 0, nil
		case num == number && kind == protowire.VarintType:
			varint, _ = protowire.ConsumeVarint(message)
			return varint, nil
		case num == number && kind == protowire.BytesType:
			value, _ = protowire.ConsumeBytes(message)
			return 0, value
		}
		message = message[size:]
	}
	return 0, nil
}
