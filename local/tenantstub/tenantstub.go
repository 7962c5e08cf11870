// Package tenantstub is a stub of bff-tenant-booking-service, which receives handed-over guests. It
// uses only the interfaces of the real service: the token verifier and the keys of package handoff,
// and the internal endpoint that consumes a handoff. It never reads a store.
package tenantstub

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
)

// Claims of the stub's ID tokens.
const (
	Account  = "bff-tenant@platform.invalid"
	Audience = "https://bff-consumer.invalid" // the service that owns the internal endpoint
)

const (
	instanceName    = "local-bff-tenant"
	maxAttempts     = 2               // with the same idempotency key, after a lost response or a 503
	requestTimeout  = 5 * time.Second // of one attempt; the endpoint's own budget is half of it
	maxResponseBody = 64 << 10
)

// BFF is the stub. It is safe for concurrent use.
type BFF struct {
	url    string // base URL of the internal endpoints
	keys   handoff.Keys
	issuer *oidctest.Issuer
	now    func() time.Time

	// pendingKeys holds idempotency keys by handoff id while the result is unknown. The endpoint
	// may have consumed such a handoff, so a reload of the page must repeat the same key: a new key
	// would count as a second use.
	pendingKeys sync.Map
}

// New returns a BFF that calls the internal endpoints below a base URL with ID tokens of an issuer.
// It does no input or output.
func New(url string, keys handoff.Keys, i *oidctest.Issuer, now func() time.Time) *BFF {
	return &BFF{url: url, keys: keys, issuer: i, now: now}
}

// Response is the response of the internal endpoint.
type Response struct {
	Status      int
	ContentType string
	Body        []byte // truncated to 64 KiB
}

// Bootstrap consumes the handoff of a token, the value of h in the booking page's URL. It makes at
// most two HTTP calls of at most 5 s each. The response may be a rejection. Bootstrap returns a
// problem without any call for an empty token (Invalid), an expired token (HandoffExpired) or a
// token with a wrong signature (HandoffSignatureInvalid), and UpstreamUnavailable if the last call
// gets no response.
func (b *BFF) Bootstrap(ctx context.Context, token string) (*Response, error) {
	if token == "" {
		return nil, problem.Invalid(problem.FieldError{Field: "token", Code: "required", Detail: "Send the value of h in the booking page's URL."})
	}
	h, err := b.keys.Verify(token, b.now())
	switch {
	case errors.Is(err, handoff.ErrExpired):
		return nil, problem.New(problem.HandoffExpired, "The guest must request a new handoff.", err)
	case err != nil:
		return nil, problem.New(problem.HandoffSignatureInvalid, "The token is not genuine.", err)
	}
	body, err := json.Marshal(map[string]string{"token": token, "consumedBy": instanceName})
	if err != nil {
		return nil, err
	}
	// The key identifies this use. After a response, the next Bootstrap with the same token is a
	// new use.
	key, _ := b.pendingKeys.LoadOrStore(h.ID, rand.Text())
	var response *Response
	for range maxAttempts {
		response, err = b.consume(ctx, h.ID, key.(string), body)
		if err == nil && response.Status != http.StatusServiceUnavailable {
			b.pendingKeys.CompareAndDelete(h.ID, key)
			return response, nil
		}
	}
	if err == nil {
		return response, nil
	}
	return nil, problem.New(problem.UpstreamUnavailable, "The handoff cannot be consumed at present.", err)
}

// consume calls the internal endpoint once.
func (b *BFF) consume(ctx context.Context, id, key string, body []byte) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/internal/handoff/"+id+"/consume", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+b.issuer.Token(Audience, Account, b.now()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("User-Agent", instanceName)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("tenant: consume: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBody))
	if err != nil {
		return nil, fmt.Errorf("tenant: consume: %w", err)
	}
	return &Response{res.StatusCode, res.Header.Get("Content-Type"), text}, nil
}
