package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/sony/gobreaker/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

const (
	maxBody  = 2 << 20  // bytes of a response; a larger response is a failure of the upstream
	maxDrain = 64 << 10 // bytes of an error response to read, so that the connection can be reused
)

// client calls one upstream.
type client struct {
	name      string
	base      string // without a trailing slash
	audience  string // of the ID token, as Cloud Run expects: scheme and host
	policy    policy
	transport http.RoundTripper
	tokens    TokenSource
	breaker   *gobreaker.CircuitBreaker[struct{}]
}

func newClient(name string, base *url.URL, p policy, transport http.RoundTripper, tokens TokenSource) *client {
	return &client{
		name:      name,
		base:      strings.TrimRight(base.String(), "/"),
		audience:  base.Scheme + "://" + base.Host,
		policy:    p,
		transport: transport,
		tokens:    tokens,
		breaker:   newBreaker(name),
	}
}

// NewTransport returns a new connection pool for the upstreams: HTTP/2 where offered, 1 s each for
// dial and TLS handshake, at most 256 idle connections (64 per host, closed after 90 s), any number
// of busy connections, response headers up to 64 KiB, no proxy from the environment, and no
// compression, because the services are in the same region. Redirects are not followed, because no
// http.Client uses the transport. NewTransport opens no connection and never fails. Use one
// transport per process. Safe for concurrent use.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		// All calls to a host share an HTTP/2 connection; pings detect a silently broken
		// connection.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
	}
}

// call is a request to an upstream. All calls, even POSTs, only read, so every call may be
// repeated.
type call struct {
	path  string // escaped
	query url.Values
	body  any // nil: GET, else POST as JSON
}

// fetch sends a call under the client's policy and returns the decoded response after check. check
// may remove bad parts of the response; an error of check means that the upstream broke the
// contract.
func fetch[T any](ctx context.Context, c *client, q call, check func(*T) error) (T, error) {
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			var zero T
			return zero, fmt.Errorf("upstream: encode query for %s: %w", c.name, err)
		}
	}
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	return withRetry(ctx, c, func(ctx context.Context) (response T, err error) {
		err = c.exchange(ctx, target, body, func(data []byte) error {
			if err := json.Unmarshal(data, &response); err != nil {
				return err
			}
			return check(&response)
		})
		return response, err
	})
}

// exchange sends an HTTP request, reads the whole response and passes the body to read. read must
// not keep the bytes.
func (c *client) exchange(ctx context.Context, target string, body []byte, read func([]byte) error) error {
	req, err := c.newRequest(ctx, target, body)
	if err != nil {
		return err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return &Error{Upstream: c.name, Reason: Unavailable, Err: err, retryable: true, fault: true}
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		io.CopyN(io.Discard, resp.Body, maxDrain)
		return c.statusError(resp)
	}
	buf := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= 256<<10 { // a huge response must not stay in memory for ever
			buf.Reset()
			buffers.Put(buf)
		}
	}()
	if n, err := buf.ReadFrom(io.LimitReader(resp.Body, maxBody+1)); err != nil {
		return &Error{Upstream: c.name, Reason: Unavailable, Err: err, retryable: true, fault: true}
	} else if n > maxBody {
		return &Error{Upstream: c.name, Reason: BadResponse, Err: errTooLarge, fault: true}
	}
	if err := read(buf.Bytes()); err != nil {
		return &Error{Upstream: c.name, Reason: BadResponse, Err: err, fault: true}
	}
	return nil
}

var (
	buffers     = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	errTooLarge = errors.New("body over 2 MiB")
)

// newRequest returns a request with the headers of the contract. It waits for an ID token until the
// deadline of ctx.
func (c *client) newRequest(ctx context.Context, target string, body []byte) (*http.Request, error) {
	method, payload := http.MethodGet, io.Reader(http.NoBody)
	if body != nil {
		method, payload = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, payload)
	if err != nil {
		// unreachable: parsed base, escaped path
		return nil, fmt.Errorf("upstream: build request for %s: %w", c.name, err)
	}
	h := req.Header
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "melmastoon-bff-consumer")
	if body != nil {
		h.Set("Content-Type", "application/json")
		// Not sent. An empty Idempotency-Key marks the POST as repeatable, so that the transport
		// silently replaces a pooled connection closed by the server, as for a GET.
		h["Idempotency-Key"] = []string{}
	}
	caller, _ := ctx.Value(callerKey{}).(Caller)
	for name, value := range map[string]string{
		"X-Request-Id":  caller.RequestID,
		"Traceparent":   cmp.Or(otlp.Traceparent(ctx), caller.Traceparent), // the span of this try, if traced
		"X-User-Bucket": caller.Bucket,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		// Rounded down: the upstream should give up a little before this client.
		h.Set("X-Request-Deadline-Ms", strconv.FormatInt(max(1, time.Until(deadline).Milliseconds()), 10))
	}
	if c.tokens != nil {
		token, err := c.tokens.Token(ctx, c.audience)
		if err != nil { // not the upstream's fault, so the breaker does not count the error
			return nil, &Error{Upstream: c.name, Reason: Unavailable, Err: fmt.Errorf("token: %w", err), retryable: true}
		}
		h.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// statusError maps a status other than 200 to an error.
func (c *client) statusError(resp *http.Response) error {
	e := &Error{Upstream: c.name, Reason: Unavailable, Status: resp.StatusCode}
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound && isJSON(resp.Header.Get("Content-Type")):
		return ErrNotFound
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		e.retryable, e.fault = true, true
	case status >= 500:
		e.fault = true
	case status == http.StatusTooManyRequests:
	case status >= 400:
		// The upstream is healthy but refuses the call: a wrong base URL (a front end's 404 is
		// HTML), no permission, or an unknown query.
		e.Reason = BadResponse
	default: // another 2xx, or a redirect: not in the contract
		e.Reason, e.fault = BadResponse, true
	}
	return e
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}
