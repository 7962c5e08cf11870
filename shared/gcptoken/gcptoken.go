// Package account owns the tokens of the Google account that this process runs as. They come from the platform's metadata server and
// nowhere else, and each is kept until shortly before its end. It never writes one down, nor an error that has one in it.
package gcptoken

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/singleflight"
)

// Scopes of access tokens: what whoever holds one can do with it.
const (
	ScopeCloudPlatform = "https://www.googleapis.com/auth/cloud-platform"
	ScopeRemoteConfig  = "https://www.googleapis.com/auth/firebase.remoteconfig"
	ScopeSQLLogin      = "https://www.googleapis.com/auth/sqlservice.login" // log in to databases, nothing else
)

const (
	metadataPath = "instance/service-accounts/default/"
	fetchTimeout = 2 * time.Second
	// minRemainingLife is how long a token must live to be given out. The server keeps one until four or five minutes before its end; whoever asks
	// earlier gets the same one again.
	minRemainingLife = 3*time.Minute + 45*time.Second
)

// Source gives tokens. Safe for concurrent use.
type Source struct {
	server *metadata.Client
	now    func() time.Time
	flight singleflight.Group

	mu    sync.Mutex
	cache map[string]token // by the question that brought it
}

type token struct {
	value     string
	expiresAt time.Time
}

// Default is this process's. It asks for nothing until a token is wanted.
var Default = sync.OnceValue(func() *Source { return newSource(time.Now) })

func newSource(now func() time.Time) *Source {
	transport := &http.Transport{ // no proxy: what it would see are tokens
		DialContext:         (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
	return &Source{server: metadata.NewClient(&http.Client{Transport: transport}), now: now, cache: map[string]token{}}
}

// AccessToken is an OAuth access token with a scope.
func (t *Source) AccessToken(ctx context.Context, scope string) (string, error) {
	return t.get(ctx, metadataPath+"token?scopes="+url.QueryEscape(scope), func(answer string) (token, error) {
		var granted struct {
			Token string  `json:"access_token"`
			Lives float64 `json:"expires_in"` // seconds
		}
		if json.Unmarshal([]byte(answer), &granted) != nil || granted.Token == "" {
			return token{}, errMalformedResponse
		}
		return token{granted.Token, t.now().Add(time.Duration(granted.Lives * float64(time.Second)))}, nil
	})
}

// IDToken is an ID token that tells an audience who we are, our address included.
func (t *Source) IDToken(ctx context.Context, audience string) (string, error) {
	return t.get(ctx, metadataPath+"identity?format=full&audience="+url.QueryEscape(audience), func(answer string) (token, error) {
		answer = strings.TrimSpace(answer)
		parts := strings.Split(answer, ".")
		if len(parts) != 3 {
			return token{}, errMalformedResponse
		}
		var claims struct {
			Ends int64 `json:"exp"`
		}
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(payload, &claims) != nil {
			return token{}, errMalformedResponse
		}
		return token{answer, time.Unix(claims.Ends, 0)}, nil
	})
}

// errMalformedResponse repeats nothing of an answer: it may be a token.
var errMalformedResponse = errors.New("the answer of the metadata server is none")

// get waits no longer than ctx says; what it started goes on without it, up to 2 s, for the next caller. Who asks meanwhile shares it.
func (t *Source) get(ctx context.Context, question string, read func(string) (token, error)) (string, error) {
	if kept, ok := t.cached(question); ok {
		return kept, nil
	}
	asked := t.flight.DoChan(question, func() (any, error) {
		if kept, ok := t.cached(question); ok { // of a flight that landed in between
			return kept, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		answer, err := t.server.GetWithContext(ctx, question)
		if err != nil {
			return "", fmt.Errorf("account: ask the metadata server: %w", err)
		}
		fresh, err := read(answer)
		if err != nil {
			return "", fmt.Errorf("account: %w", err)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cache[question] = fresh
		return fresh.value, nil
	})
	select {
	case r := <-asked:
		return r.Val.(string), r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// cached gives a kept token that lives long enough to be used.
func (t *Source) cached(question string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, ok := t.cache[question]
	return kept.value, ok && kept.expiresAt.Sub(t.now()) > minRemainingLife
}
