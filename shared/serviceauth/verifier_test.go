package serviceauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
)

const (
	audience = "https://consume.example"
	account  = "bff-tenant@platform.iam.gserviceaccount.com"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Generating an RSA key takes a tenth of a second or more, so all tests share three issuers.
var (
	sharedIssuer = sync.OnceValues(func() (*oidctest.Issuer, error) { return oidctest.New("one") })
	// another key with the same id
	otherIssuer = sync.OnceValues(func() (*oidctest.Issuer, error) { return oidctest.New("one") })
	laterIssuer = sync.OnceValues(func() (*oidctest.Issuer, error) { return oidctest.New("two") })
)

// harness is a verifier with a clock, and an issuer whose key server counts the fetches.
type harness struct {
	*oidctest.Issuer
	server   *httptest.Server
	fetches  atomic.Int64
	handler  atomic.Value // http.HandlerFunc
	now      time.Time
	verifier *Verifier
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	i, err := sharedIssuer()
	if err != nil {
		t.Fatal(err)
	}
	p := &harness{Issuer: i, now: noon}
	p.handler.Store(http.HandlerFunc(i.ServeHTTP))
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.handler.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.verifier, err = New(Config{oidctest.IssuerURL, p.server.URL, audience, []string{"other@x", account}}, func() time.Time { return p.now })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *harness) verify(token string) (string, error) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return p.verifier.Verify(r)
}

func TestVerifierVerify_AcceptsAllowedAccount(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	for range 3 {
		got, err := p.verify(p.Token(audience, account, noon))
		if err != nil || got != account {
			t.Errorf("Verify: %q, %v, want %q", got, err, account)
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestVerifierVerify_RejectsInvalidTokens(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	stranger, err := otherIssuer()
	if err != nil {
		t.Fatal(err)
	}
	head := func(change ...any) map[string]any {
		return withChanges(map[string]any{"alg": "RS256", "kid": "one"}, change)
	}
	said := func(change ...any) map[string]any {
		return withChanges(map[string]any{
			"iss": oidctest.IssuerURL, "aud": audience, "email": account, "email_verified": true,
			"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
		}, change)
	}
	good := p.Sign(head(), said())
	if _, err := p.verify(good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	confused := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + parts[1]
	mac := hmac.New(sha256.New, p.KeySet())
	mac.Write([]byte(confused))
	confused += "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	for name, token := range map[string]string{
		"empty":                               "",
		"not a token":                         "abc",
		"signature of another key":            stranger.Sign(head(), said()),
		"no signature":                        unsigned,
		"HS256 with the public key as secret": confused,
		"RS512 in the header":                 p.Sign(head("alg", "RS512"), said()),
		"lower-case rs256":                    p.Sign(head("alg", "rs256"), said()),
		"no algorithm":                        p.Sign(head("alg", nil), said()),
		"no key id":                           p.Sign(head("kid", nil), said()),
		"an unknown key id":                   p.Sign(head("kid", "two"), said()),
		"critical extensions":                 p.Sign(head("crit", []string{"b64"}), said()),
		"another issuer":                      p.Sign(head(), said("iss", "https://accounts.google.com")),
		"no issuer":                           p.Sign(head(), said("iss", nil)),
		"another audience":                    p.Sign(head(), said("aud", audience+"/")),
		"no audience":                         p.Sign(head(), said("aud", nil)),
		"a list of audiences":                 p.Sign(head(), said("aud", []string{audience})),
		"another account":                     p.Sign(head(), said("email", "guest@example.com")),
		"no account":                          p.Sign(head(), said("email", nil)),
		"upper-case account":                  p.Sign(head(), said("email", strings.ToUpper(account))),
		"unverified account":                  p.Sign(head(), said("email_verified", false)),
		"expired":                             p.Sign(head(), said("exp", noon.Add(-time.Minute).Unix())),
		"no expiry":                           p.Sign(head(), said("exp", nil)),
		"expiry out of range":                 p.Sign(head(), said("exp", -1e300)),
		"from the future":                     p.Sign(head(), said("iat", noon.Add(time.Minute).Unix())),
		"truncated":                           good[:len(good)-2],
		"four parts":                          good + "." + parts[2],
		"padded":                              good + "=",
		"a changed claim":                     parts[0] + "." + parts[1][:len(parts[1])-4] + "AAAA." + parts[2],
		"huge":                                good + strings.Repeat("A", maxTokenBytes),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := p.verify(token); !errors.Is(err, ErrNotAllowed) || got != "" {
				t.Errorf("Verify: %q, %v, want ErrNotAllowed", got, err)
			}
		})
	}
	if n := p.fetches.Load(); n > 2 {
		t.Errorf("%d fetches for made-up key ids, want 2 at most", n)
	}
}

func withChanges(m map[string]any, change []any) map[string]any {
	for i := 0; i < len(change); i += 2 {
		if m[change[i].(string)] = change[i+1]; change[i+1] == nil {
			delete(m, change[i].(string))
		}
	}
	return m
}

func TestVerifierVerify_AcceptsIssuerWithoutScheme(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	if _, err := p.verify(p.Sign(map[string]any{"alg": "RS256", "kid": "one"}, map[string]any{
		"iss": strings.TrimPrefix(oidctest.IssuerURL, "https://"), "aud": audience, "email": account, "email_verified": true,
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	})); err != nil {
		t.Error(err)
	}
}

func TestVerifierVerify_RequiresOneBearerHeader(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	token := p.Token(audience, account, noon)
	for name, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"bearer":            {[]string{"Bearer " + token}, true},
		"lower-case scheme": {[]string{"bearer " + token}, true},
		"none":              {nil, false},
		"two":               {[]string{"Bearer " + token, "Bearer " + token}, false},
		"basic":             {[]string{"Basic " + token}, false},
		"no scheme":         {[]string{token}, false},
		"two in one header": {[]string{"Bearer " + token + ", Bearer " + token}, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Authorization"] = c.headers
		if _, err := p.verifier.Verify(r); (err == nil) != c.ok {
			t.Errorf("%s: Verify: %v, want accepted: %v", name, err, c.ok)
		}
	}
}

func TestKeySet_RefreshesAndRateLimitsFetches(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	later, err := laterIssuer()
	if err != nil {
		t.Fatal(err)
	}
	old := func() string { return p.Token(audience, account, p.now) }
	new := func() string { return later.Token(audience, account, p.now) }
	unavailable := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for _, c := range []struct {
		name    string
		after   time.Duration
		serve   http.HandlerFunc
		token   func() string
		ok      bool
		fetches int64
	}{
		{"first token", 0, nil, old, true, 1},
		{"fresh keys", 59 * time.Minute, unavailable, old, true, 0},
		{"expired keys, issuer unavailable", time.Minute, nil, old, true, 1},
		{"no second fetch within 10 s", time.Second, nil, old, true, 0},
		{"new key, issuer unavailable", minFetchInterval, nil, new, false, 1},
		{"issuer has only the new key", minFetchInterval, later.ServeHTTP, new, true, 1},
		{"old key is rejected", minFetchInterval, nil, old, false, 1},
		{"empty key set keeps the known keys", time.Hour, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) }, new, true, 1},
		{"24 h after the last fetch", 24 * time.Hour, unavailable, new, false, 1},
		{"issuer available again", minFetchInterval, later.ServeHTTP, new, true, 1},
	} {
		p.now = p.now.Add(c.after)
		if c.serve != nil {
			p.handler.Store(c.serve)
		}
		before := p.fetches.Load()
		if _, err := p.verify(c.token()); (err == nil) != c.ok {
			t.Errorf("%s: Verify: %v, want accepted: %v", c.name, err, c.ok)
		}
		if n := p.fetches.Load() - before; n != c.fetches {
			t.Errorf("%s: %d fetches, want %d", c.name, n, c.fetches)
		}
	}
}

func TestKeySet_ReadsFromFile(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	file := t.TempDir() + "/keys.json"
	if err := os.WriteFile(file, p.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	check, err := New(Config{oidctest.IssuerURL, file, audience, []string{account}}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	p.verifier = check
	if _, err := p.verify(p.Token(audience, account, noon)); err != nil || p.fetches.Load() != 0 {
		t.Error(err)
	}
}

func TestNew_RejectsIncompleteConfig(t *testing.T) {
	t.Parallel()
	whole := Config{GoogleIssuer, GoogleKeysURL, audience, []string{account}}
	if _, err := New(whole, time.Now); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no issuer":        func(c *Config) { c.Issuer = "" },
		"no audience":      func(c *Config) { c.Audience = "" },
		"no accounts":      func(c *Config) { c.Accounts = nil },
		"an empty account": func(c *Config) { c.Accounts = []string{account, ""} },
		"no keys":          func(c *Config) { c.KeySource = "" },
		"keys in clear":    func(c *Config) { c.KeySource = "http://issuer.example/certs" },
		"keys by FTP":      func(c *Config) { c.KeySource = "ftp://issuer.example/certs" },
	} {
		c := whole
		spoil(&c)
		if _, err := New(c, time.Now); err == nil {
			t.Errorf("New accepts %s", name)
		}
	}
}

func TestParseKeySet_KeepsOnlyRSASigningKeys(t *testing.T) {
	t.Parallel()
	i, err := sharedIssuer()
	if err != nil {
		t.Fatal(err)
	}
	good := string(i.KeySet())
	for name, c := range map[string]struct {
		set string
		ok  bool
	}{
		"one":            {good, true},
		"with others":    {strings.Replace(good, `[`, `[{"kty":"EC","kid":"x","crv":"P-256"},{"kty":"RSA","kid":"s","n":"AQAB","e":"AQAB"},`, 1), true},
		"to encrypt":     {strings.Replace(good, `"sig"`, `"enc"`, 1), false},
		"another use":    {strings.Replace(good, `"RS256"`, `"RS512"`, 1), false},
		"an even number": {strings.Replace(good, `"AQAB"`, `"AQAA"`, 1), false},
		"a huge number":  {strings.Replace(good, `"AQAB"`, `"AQABAQAB"`, 1), false},
		"no name":        {strings.Replace(good, `"one"`, `""`, 1), false},
		"not JSON":       {"{", false},
		"a list":         {"[]", false},
	} {
		if _, err := parseKeySet([]byte(c.set)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzVerifierVerify_RejectsForgeries(f *testing.F) {
	p := newHarness(f)
	good := p.Token(audience, account, noon)
	f.Add(good)
	f.Add("e30.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := p.verify(token); err == nil && token != good {
			t.Errorf("Verify accepts %q", token)
		}
	})
}
