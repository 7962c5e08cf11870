package challenge

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Provider is a service that says of a token whether a guest or a robot got it. Safe for concurrent use.
type Provider interface {
	// Verify asks about a token. An error says that there was no answer, which says nothing of the client.
	Verify(ctx context.Context, token string) (Assessment, error)

	// Offer is what a page needs to get a token; nil while the service does not answer.
	Offer() *Offer
}

// Assessment is what a provider says of a token.
type Assessment struct {
	Valid  bool
	Score  float64 // 0 robot … 1 human
	Reason string  // why it is not valid, in one word
}

const (
	maxCachedTokens = 4_096           // answers kept per instance, each some hundred bytes
	tokenTTL        = 2 * time.Minute // then reCAPTCHA itself calls a token expired
	maxToken        = 8_192           // bytes; headers have 16 KiB in all
	minToken        = 20
)

// onceVerifier asks the provider about each token one time: it takes money for an answer, and calls a token it has seen a
// duplicate. The calls of a page that carry the same token share the answer, if it is the same client that makes them. An
// instance knows only what it asked itself; the other ones' calls are told DUPE, and are answered when they come again.
type onceVerifier struct {
	provider Provider
	now      func() time.Time
	results  *lru.Cache[[sha256.Size]byte, *verification]
}

type verification struct {
	client     Client
	startedAt  time.Time
	done       chan struct{} // closed when a and err are there
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

func (o *onceVerifier) verify(ctx context.Context, token string, c Client) (Assessment, error) {
	if !plausible(token) {
		return Assessment{Reason: "not a token"}, nil
	}
	digest := sha256.Sum256([]byte(token))
	mine := &verification{client: c, startedAt: o.now(), done: make(chan struct{}), err: errNoAnswer}
	known, found, _ := o.results.PeekOrAdd(digest, mine)
	switch {
	case !found:
		o.callProvider(ctx, token, digest, mine)
		return mine.assessment, mine.err
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

func (o *onceVerifier) callProvider(ctx context.Context, token string, digest [sha256.Size]byte, mine *verification) {
	defer func() {
		if mine.err != nil { // nobody said anything: the next call may ask
			o.results.Remove(digest)
		}
		close(mine.done)
	}()
	mine.assessment, mine.err = o.provider.Verify(ctx, token)
}

// plausible keeps what cannot be a token from being paid for.
func plausible(token string) bool {
	return len(token) >= minToken && len(token) <= maxToken && strings.IndexFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}
