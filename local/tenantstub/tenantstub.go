// Package tenant stands in for the BFF of a tenant, to which guests are handed over. It knows of this service what
// every such BFF knows: the verifier and the keys of package handoff, and the private door to consume a handoff at. It
// never looks into a store.
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

// How it is known at the private door.
const (
	Account  = "bff-tenant@platform.invalid"
	Audience = "https://bff-consumer.invalid" // the name of the service that has the door
)

const (
	instanceName    = "local-bff-tenant"
	maxAttempts     = 2               // with one key: a call whose answer was lost, or is 503, may be repeated
	requestTimeout  = 5 * time.Second // for each; the door's own budget is half of that
	maxResponseBody = 64 << 10
)

// BFF is safe for concurrent use.
type BFF struct {
	url    string // URL
	keys   handoff.Keys
	issuer *oidctest.Issuer
	now    func() time.Time

	// begun are the keys, by handoff, of uses that nobody knows the end of. It may have been consumed all the same, so
	// a guest who reloads asks under the same key; under a new one that would be a second use.
	pendingKeys sync.Map
}

// New makes the BFF that calls the door at a URL with ID tokens of an issuer.
func New(door string, keys handoff.Keys, i *oidctest.Issuer, now func() time.Time) *BFF {
	return &BFF{url: door, keys: keys, issuer: i, now: now}
}

// Response is what the private door said.
type Response struct {
	Status      int
	ContentType string // of the body
	Body        []byte
}

// Bootstrap begins a booking with the token of the URL that a guest came by. A token that is not genuine or has expired
// is refused here, without a call.
func (b *BFF) Bootstrap(ctx context.Context, token string) (*Response, error) {
	if token == "" {
		return nil, problem.Invalid(problem.FieldError{Field: "token", Code: "required", Detail: "Send the value of h in the booking page's URL."})
	}
	h, err := b.keys.Verify(token, b.now())
	switch {
	case errors.Is(err, handoff.ErrExpired):
		return nil, problem.New(problem.HandoffExpired, "The guest must ask for a new one.", err)
	case err != nil:
		return nil, problem.New(problem.HandoffSignatureInvalid, "The token is not genuine.", err)
	}
	body, err := json.Marshal(map[string]string{"token": token, "consumedBy": instanceName})
	if err != nil {
		return nil, err
	}
	// Of this use: once it is answered, another bootstrap with the same token is another use.
	key, _ := b.pendingKeys.LoadOrStore(h.ID, rand.Text())
	var answer *Response
	for range maxAttempts {
		answer, err = b.consume(ctx, h.ID, key.(string), body)
		if err == nil && answer.Status != http.StatusServiceUnavailable {
			b.pendingKeys.CompareAndDelete(h.ID, key)
			return answer, nil
		}
	}
	if err == nil {
		return answer, nil
	}
	return nil, problem.New(problem.UpstreamUnavailable, "The handoff cannot be consumed at present.", err)
}

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
