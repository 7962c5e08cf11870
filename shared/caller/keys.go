package caller

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
	fetchWithin = time.Second
	between     = 10 * time.Second // two fetches: a made-up key id must not make us ask for each token
	usualLife   = time.Hour        // of a key set that says nothing of its own
	longestLife = 24 * time.Hour   // of keys that cannot be fetched again; after it nobody is let in
	maxSet      = 256 << 10        // bytes
	minBits     = 2048
	maxBits     = 8192
)

// keys are an issuer's public keys, fetched when they are needed and not known, or when their time is over.
type keys struct {
	source string
	now    func() time.Time

	mu      sync.Mutex // held while fetching: the others need the same answer
	set     map[string]*rsa.PublicKey
	until   time.Time // fresh
	fetched time.Time
	tried   time.Time
	failed  error
}

func newKeys(source string, now func() time.Time) (*keys, error) {
	if u, err := url.Parse(source); err == nil && u.Scheme != "" {
		if u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()) {
			return &keys{source: source, now: now}, nil
		}
		return nil, errors.New("caller: keys come from an https URL or a file")
	}
	if source == "" {
		return nil, errors.New("caller: the place of the issuer's keys is required")
	}
	return &keys{source: source, now: now}, nil
}

func thisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (k *keys) find(ctx context.Context, id string) (*rsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	known := k.set[id]
	if (known == nil || !now.Before(k.until)) && now.Sub(k.tried) >= between {
		k.tried = now
		k.failed = k.fetch(ctx, now)
		known = k.set[id]
	}
	switch {
	case known != nil && now.Sub(k.fetched) < longestLife:
		return known, nil
	case k.failed != nil:
		return nil, k.failed
	default:
		return nil, errors.New("signed with a key that is not the issuer's")
	}
}

// fetch replaces the set. It goes on when the caller that began it hangs up: the next one needs it too.
func (k *keys) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchWithin)
	defer cancel()
	text, life, err := read(ctx, k.source)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	set, err := parse(text)
	if err != nil {
		return fmt.Errorf("fetch keys: %w", err)
	}
	k.set, k.fetched, k.until = set, now, now.Add(life)
	return nil
}

func read(ctx context.Context, source string) (text []byte, life time.Duration, err error) {
	if !strings.Contains(source, "://") {
		text, err = os.ReadFile(source)
		return text, usualLife, err
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
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxSet))
	return text, lifeOf(resp.Header.Get("Cache-Control")), err
}

// lifeOf is max-age, at least a minute and at most a day.
func lifeOf(cacheControl string) time.Duration {
	for part := range strings.SplitSeq(cacheControl, ",") {
		if age, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age="); ok {
			if seconds, err := strconv.ParseUint(age, 10, 31); err == nil {
				return min(max(time.Duration(seconds)*time.Second, time.Minute), longestLife)
			}
		}
	}
	return usualLife
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

// parse keeps the RSA keys that sign; a set without any is no set.
func parse(text []byte) (map[string]*rsa.PublicKey, error) {
	var doc struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("not a JWK set")
	}
	set := map[string]*rsa.PublicKey{}
	for _, k := range doc.Keys {
		if key := k.rsa(); key != nil && k.Kid != "" {
			set[k.Kid] = key
		}
	}
	if len(set) == 0 {
		return nil, errors.New("no RSA key in the set")
	}
	return set, nil
}

func (k *jwk) rsa() *rsa.PublicKey {
	if k.Kty != "RSA" || k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != "RS256" {
		return nil
	}
	n, err := encoding.DecodeString(k.N)
	e, err2 := encoding.DecodeString(k.E)
	if err != nil || err2 != nil || len(e) > 4 {
		return nil
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < minBits || bits > maxBits || key.E < 3 || key.E%2 == 0 {
		return nil
	}
	return key
}
