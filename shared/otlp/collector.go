package otlp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxResponseBody is more than a collector has to say.
const maxResponseBody = 64 << 10

// collector speaks OTLP over HTTP with an endpoint. What it cannot send is lost: nobody waits for a second try.
type collector struct {
	endpoint string // a base URL
	client   *http.Client
}

// ExportSpans sends spans, at least one.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return c.post(ctx, "/v1/traces", encodeSpans(spans))
}

// Export sends metrics.
func (c *collector) Export(ctx context.Context, now *metricdata.ResourceMetrics) error {
	all, err := encodeMetrics(now)
	if err != nil {
		return err
	}
	return c.post(ctx, "/v1/metrics", all)
}

func (c *collector) post(ctx context.Context, path string, all protoBuffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+path, bytes.NewReader(all))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "bff-consumer")
	res, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBody))
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return fmt.Errorf("telemetry: the collector answers %s with %d", path, res.StatusCode)
	case err != nil:
		return fmt.Errorf("telemetry: %w", err)
	}
	if n, why := partialSuccess(answer); n > 0 {
		// The rest was taken, and none of it may be sent again.
		logError(fmt.Errorf("the collector refused %d of what was sent to %s: %s", n, path, why))
	}
	return nil
}

// partialSuccess reads of an answer how many spans or points the collector did not take, and why. An answer that is none says nothing.
func partialSuccess(answer []byte) (n int64, why string) {
	_, partial := findField(answer, 1)
	count, _ := findField(partial, 1)
	_, text := findField(partial, 2)
	return int64(count), string(text)
}

// findField finds a field of a message, a varint or bytes.
func findField(m []byte, number uint64) (v uint64, value []byte) {
	for len(m) > 0 {
		key, n := binary.Uvarint(m)
		if n <= 0 {
			return 0, nil
		}
		m = m[n:]
		if v, n = binary.Uvarint(m); n <= 0 {
			return 0, nil
		}
		m = m[n:]
		switch {
		case key&7 == 0:
		case key&7 == 2 && v <= uint64(len(m)):
			value, m = m[:v], m[v:]
		default:
			return 0, nil
		}
		if key>>3 == number {
			return v, value
		}
	}
	return 0, nil
}
