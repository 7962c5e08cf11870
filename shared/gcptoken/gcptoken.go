// Package gcptoken gets tokens of the Google service account of this process from the platform's
// metadata server, and caches each token until shortly before its expiry. It never logs a token,
// and no error contains a token.
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

// Scopes of access tokens.
const (
	ScopeCloudPlatform = "https://www.googleapis.com/auth/cloud-platform"
	ScopeRemoteConfig  = "https://www.googleapis.com/auth/firebase.remoteconfig"
	ScopeSQLLogin      = "https://www.googleapis.com/auth/sqlservice.login" // database login only
)

const (
	metadataPath = "instance/service-accounts/default/"
	fetchTimeout = 2 * time.Second
	// minRemainingLife is the least remaining life of a reused token. The metadata server caches
	// a token until four to five minutes before its expiry; an earlier request returns the same
	// token again.
	minRemainingLife = 3*time.Minute + 45*time.Second
)

// Source caches tokens by scope and audience. Safe for concurrent use.
type Source struct {
	server       *metadata.Client
	now          func() time.Time
	fetchTimeout time.Duration // changed by tests
	flight       singleflight.Group

	mu    sync.Mutex
	cache map[string]token // by path of the metadata server
}

type token struct {
	value     string
	expiresAt time.Time
}

// Default returns the Source of this process, always the same. It sends no request before the first
// token is needed and never fails. Safe for concurrent use.
var Default = sync.OnceValue(func() *Source { return newSource(time.Now) })

func newSource(now func() time.Time) *Source {
	transport := &http.Transport{ // no proxy: a proxy would see tokens
		DialContext:         (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
	return &Source{server: metadata.NewClient(&http.Client{Transport: transport}), now: now, fetchTimeout: fetchTimeout, cache: map[string]token{}}
}

// AccessToken returns an OAuth access token with a scope. A cached token with more than 3 min 45 s
// left costs no request, only a mutex of the Source for a moment, also with a context that has
// ended. Otherwise the caller waits for the metadata server until ctx ends, at most 2 s; concurrent
// callers for the same scope share the request. Within the 2 s the request is repeated up to 5
// times after 5xx, 429 and temporary network errors. The request goes on after ctx ends, for the
// next caller.
//
// The error is the unwrapped ctx.Err(), or wraps the error of the metadata server
// (context.DeadlineExceeded after 2 s), or tells of a malformed response. Errors are not cached:
// the next call asks again. A token with less time left is returned but not reused. Without a
// metadata server AccessToken fails. The cache keeps one token per scope and audience for the life
// of the process.
func (s *Source) AccessToken(ctx context.Context, scope string) (string, error) {
	return s.get(ctx, metadataPath+"token?scopes="+url.QueryEscape(scope), func(answer string) (token, error) {
		var granted struct {
			Token string  `json:"access_token"`
			Lives float64 `json:"expires_in"` // seconds
		}
		if json.Unmarshal([]byte(answer), &granted) != nil || granted.Token == "" {
			return token{}, errMalformedResponse
		}
		return token{granted.Token, s.now().Add(time.Duration(granted.Lives * float64(time.Second)))}, nil
	})
}

// IDToken returns an ID token for an audience, with the account's email address. A cached token
// with more than 3 min 45 s left costs no request, only a mutex of the Source for a moment.
// Otherwise the caller waits for the metadata server until ctx ends, at most 2 s; concurrent
// callers for the same audience share the request, which goes on after ctx ends. The error is
// ctx.Err(), or wraps the error of the metadata server, or tells of a malformed response. Errors
// are not cached. Without a metadata server IDToken fails.
func (s *Source) IDToken(ctx context.Context, audience string) (string, error) {
	return s.get(ctx, metadataPath+"identity?format=full&audience="+url.QueryEscape(audience), func(answer string) (token, error) {
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

// errMalformedResponse does not repeat the response, which may contain a token.
var errMalformedResponse = errors.New("malformed response of the metadata server")

// get returns a cached token, or waits for a request to the metadata server until ctx ends. The
// request goes on after ctx, up to 2 s, for the next caller. Concurrent callers share the request.
func (s *Source) get(ctx context.Context, path string, parse func(string) (token, error)) (string, error) {
	if cached, ok := s.cached(path); ok {
		return cached, nil
	}
	result := s.flight.DoChan(path, func() (any, error) {
		if cached, ok := s.cached(path); ok { // cached by a request that ended in between
			return cached, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.fetchTimeout)
		defer cancel()
		answer, err := s.server.GetWithContext(ctx, path)
		if err != nil {
			return "", fmt.Errorf("gcptoken: ask the metadata server: %w", err)
		}
		fresh, err := parse(answer)
		if err != nil {
			return "", fmt.Errorf("gcptoken: %w", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cache[path] = fresh
		return fresh.value, nil
	})
	select {
	case r := <-result:
		return r.Val.(string), r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// cached returns a cached token with at least minRemainingLife left.
func (s *Source) cached(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cached, ok := s.cache[path]
	return cached.value, ok && cached.expiresAt.Sub(s.now()) > minRemainingLife
}
