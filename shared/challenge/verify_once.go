package challenge

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Provider is an external service that rates the tokens of clients. An implementation must be safe
// for concurrent use.
type Provider interface {
	// Verify assesses a token. An error means that the service did not answer; the client is
	// neither better nor worse for it.
	Verify(ctx context.Context, token string) (Assessment, error)

	// Offer returns what a page needs to obtain a token, or nil while the service does not answer.
	Offer() *Offer
}

// Assessment is a provider's answer for a token.
type Assessment struct {
	Valid  bool
	Score  float64 // 0 bot … 1 human
	Reason string  // why the token is not valid, for the log
}

const (
	maxCachedTokens = 4_096           // answers per instance, each some hundred bytes
	tokenTTL        = 2 * time.Minute // then reCAPTCHA itself treats a token as expired
	maxToken        = 8_192           // bytes; all headers of a request have at most 16 KiB
	minToken        = 20              // bytes
)

// onceVerifier sends each token to the provider once, because the provider charges for each
// assessment and answers DUPE to a token that it has assessed before. Concurrent and later calls of
// one client with the same token share the answer. Each instance knows only its own calls. Another
// instance gets DUPE for the same token; its client passes with a repeated request, when Redis has
// the proof of the session. Safe for concurrent use.
type onceVerifier struct {
	provider Provider
	now      func() time.Time
	results  *lru.Cache[[sha256.Size]byte, *verification]
}

// verification is one call of the provider.
type verification struct {
	client     Client
	startedAt  time.Time
	done       chan struct{} // closed when assessment and err are set
	assessment Assessment
	err        error
}

func newOnceVerifier(p Provider, now func() time.Time) *onceVerifier {
	kept, err := lru.New[[sha256.Size]byte, *verification](maxCachedTokens)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &onceVerifier{p, now, kept}
}

var errNoAnswer = errors.New("no answer")

// verify returns the provider's assessment of a token. The first caller of a token waits for the
// provider; other callers wait for the first caller, at most until ctx ends. It rejects a token
// that is implausible, sent by another client before, or older than tokenTTL, without a call. After
// a failed call the next caller tries again.
func (o *onceVerifier) verify(ctx context.Context, token string, c Client) (Assessment, error) {
	if !plausible(token) {
		return Assessment{Reason: "not a token"}, nil
	}
	digest := sha256.Sum256([]byte(token))
	own := &verification{client: c, startedAt: o.now(), done: make(chan struct{}), err: errNoAnswer}
	known, found, _ := o.results.PeekOrAdd(digest, own)
	switch {
	case !found:
		o.callProvider(ctx, token, digest, own)
		return own.assessment, own.err
	case known.client != c:
		return Assessment{Reason: "of another client"}, nil
	case o.now().Sub(known.startedAt) > tokenTTL:
		return Assessment{Reason: "expired"}, nil
	}
	select {
	case <-known.done:
		return known.assessment, known.err
	case <-ctx.Done():
		return Assessment{}, ctx.Err()
	}
}

// callProvider sets the result of v. It forgets v if the provider does not answer or panics.
func (o *onceVerifier) callProvider(ctx context.Context, token string, digest [sha256.Size]byte, v *verification) {
	defer func() {
		if v.err != nil {
			o.results.Remove(digest)
		}
		close(v.done)
	}()
	v.assessment, v.err = o.provider.Verify(ctx, token)
}

// plausible reports whether a text has the length and the characters of a token. It saves the
// charge for an assessment of any other text.
func plausible(token string) bool {
	return len(token) >= minToken && len(token) <= maxToken && strings.IndexFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}
