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
	fetchTimeout     = time.Second
	minFetchInterval = 10 * time.Second // two fetches: a made-up key id must not make us ask for each token
	defaultKeyTTL    = time.Hour        // of a key set that says nothing of its own
	maxKeyTTL        = 24 * time.Hour   // of keys that cannot be fetched again; after it nobody is let in
	maxKeySetBytes   = 256 << 10        // bytes
	minKeyBits       = 2048
	maxKeyBits       = 8192
)

// keySet are an issuer's public keys, fetched when they are needed and not known, or when their time is over.
type keySet struct {
	source string
	now    func() time.Time

	mu          sync.Mutex // held while fetching: the others need the same answer
	byID        map[string]*rsa.PublicKey
	freshUntil  time.Time // fresh
	fetchedAt   time.Time
	attemptedAt time.Time
	fetchErr    error
}

func newKeySet(source string, now func() time.Time) (*keySet, error) {
	if u, err := url.Parse(source); err == nil && u.Scheme != "" {
		if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
			return &keySet{source: source, now: now}, nil
		}
		return nil, errors.New("caller: keys come from an https URL or a file")
	}
	if source == "" {
		return nil, errors.New("caller: the place of the issuer's keys is required")
	}
	return &keySet{source: source, now: now}, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

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

// fetch replaces the set. It goes on when the caller that began it hangs up: the next one needs it too.
func (k *keySet) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	text, life, err := readKeySet(ctx, k.source)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	set, err := parseKeySet(text)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	k.byID, k.fetchedAt, k.freshUntil = set, now, now.Add(life)
	return nil
}

func readKeySet(ctx context.Context, source string) (text []byte, life time.Duration, err error) {
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

// maxAge is max-age, at least a minute and at most a day.
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

// jwk is one key of a set, RFC 7517.
type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	N   string `json:"n"`
	E   string `json:"e"`
}

// parseKeySet keeps the RSA keys that sign; a set without any is no set.
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
