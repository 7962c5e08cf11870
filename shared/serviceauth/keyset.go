package serviceauth

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	fetchTimeout = time.Second
	// between two fetches: tokens with made-up key ids must not cause a fetch each
	minFetchInterval = 10 * time.Second
	defaultKeyTTL    = time.Hour      // of a key set without max-age
	maxKeyTTL        = 24 * time.Hour // since the last successful fetch; afterwards all tokens are rejected
	maxKeySetBytes   = 256 << 10      // bytes
	minKeyBits       = 2048
	maxKeyBits       = 8192
)

// keySet holds an issuer's public keys. It fetches them for an unknown key id and after their
// expiry. Safe for concurrent use.
type keySet struct {
	source string
	now    func() time.Time

	mu          sync.Mutex // held while fetching: concurrent callers need the same keys
	byID        map[string]*rsa.PublicKey
	freshUntil  time.Time
	fetchedAt   time.Time
	attemptedAt time.Time
	fetchErr    error
}

// newKeySet returns an empty key set of an https URL, an http URL of this machine, or a file.
func newKeySet(source string, now func() time.Time) (*keySet, error) {
	if u, err := url.Parse(source); err == nil && u.Scheme != "" {
		if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
			return &keySet{source: source, now: now}, nil
		}
		return nil, errors.New("serviceauth: keys come from an https URL or a file")
	}
	if source == "" {
		return nil, errors.New("serviceauth: the source of the issuer's keys is required")
	}
	return &keySet{source: source, now: now}, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// find returns the key of an id, and fetches the key set first if necessary.
func (k *keySet) find(ctx context.Context, id string) (*rsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	known := k.byID[id]
	if (known == nil || !now.Before(k.freshUntil)) && now.Sub(k.attemptedAt) >= minFetchInterval {
		k.attemptedAt = now
		k.fetchErr = k.fetch(ctx, now)
		known = k.byID[id]
	}
	switch {
	case known != nil && now.Sub(k.fetchedAt) < maxKeyTTL:
		return known, nil
	case k.fetchErr != nil:
		return nil, k.fetchErr
	default:
		return nil, errors.New("signed with a key that is not the issuer's")
	}
}

// fetch replaces the keys, within 1 s. It ignores the cancellation of the request that started it,
// because the next request needs the keys too.
func (k *keySet) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	text, ttl, err := readKeySet(ctx, k.source)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	set, err := parseKeySet(text)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	k.byID, k.fetchedAt, k.freshUntil = set, now, now.Add(ttl)
	return nil
}

// readKeySet reads the source, and tells how long its keys stay fresh.
func readKeySet(ctx context.Context, source string) (text []byte, ttl time.Duration, err error) {
	if !strings.Contains(source, "://") {
		text, err = os.ReadFile(source)
		return text, defaultKeyTTL, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("status %d", resp.StatusCode)
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxKeySetBytes))
	return text, maxAge(resp.Header.Get("Cache-Control")), err
}

// maxAge returns max-age, at least a minute and at most a day, or an hour without max-age.
func maxAge(cacheControl string) time.Duration {
	for part := range strings.SplitSeq(cacheControl, ",") {
		if age, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age="); ok {
			if seconds, err := strconv.ParseUint(age, 10, 31); err == nil {
				return min(max(time.Duration(seconds)*time.Second, time.Minute), maxKeyTTL)
			}
		}
	}
	return defaultKeyTTL
}

// jwk is a key of a JWK set, RFC 7517.
type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	N   string `json:"n"`
	E   string `json:"e"`
}

// parseKeySet returns the RSA signing keys of a JWK set by key id, or an error if there are none.
func parseKeySet(text []byte) (map[string]*rsa.PublicKey, error) {
	var doc struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("not a JWK set")
	}
	set := map[string]*rsa.PublicKey{}
	for _, k := range doc.Keys {
		if key := k.publicKey(); key != nil && k.Kid != "" {
			set[k.Kid] = key
		}
	}
	if len(set) == 0 {
		return nil, errors.New("no RSA key in the set")
	}
	return set, nil
}

// publicKey returns the key, or nil unless it is an RSA signing key of 2048 to 8192 bits for RS256.
func (k *jwk) publicKey() *rsa.PublicKey {
	if k.Kty != "RSA" || k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != "RS256" {
		return nil
	}
	n, err := encoding.DecodeString(k.N)
	e, err2 := encoding.DecodeString(k.E)
	if err != nil || err2 != nil || len(e) > 4 {
		return nil
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < minKeyBits || bits > maxKeyBits || key.E < 3 || key.E%2 == 0 {
		return nil
	}
	return key
}
