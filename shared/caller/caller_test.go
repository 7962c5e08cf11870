package caller

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
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/caller/issuer"
)

const (
	audience = "https://consume.example"
	account  = "bff-tenant@platform.iam.gserviceaccount.com"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// platform is an issuer with its key set on a server that counts, and a clock.
type platform struct {
	*issuer.Issuer
	server *httptest.Server
	asked  atomic.Int64
	serve  atomic.Value // http.HandlerFunc
	now    time.Time
	check  *Check
}

func newPlatform(t testing.TB) *platform {
	t.Helper()
	i, err := issuer.New("one")
	if err != nil {
		t.Fatal(err)
	}
	p := &platform{Issuer: i, now: noon}
	p.serve.Store(http.HandlerFunc(i.ServeHTTP))
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.serve.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.check, err = New(Config{issuer.Name, p.server.URL, audience, []string{"other@x", account}}, func() time.Time { return p.now })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *platform) call(token string) (string, error) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return p.check.Caller(r)
}

func TestAnAllowedAccountIsLetIn(t *testing.T) {
	p := newPlatform(t)
	for range 3 {
		got, err := p.call(p.Token(audience, account, noon))
		if err != nil || got != account {
			t.Errorf("%q, %v", got, err)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestEveryPartOfATokenCounts(t *testing.T) {
	p := newPlatform(t)
	stranger, err := issuer.New("one")
	if err != nil {
		t.Fatal(err)
	}
	head := func(change ...any) map[string]any { return with(map[string]any{"alg": "RS256", "kid": "one"}, change) }
	said := func(change ...any) map[string]any {
		return with(map[string]any{
			"iss": issuer.Name, "aud": audience, "email": account, "email_verified": true,
			"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
		}, change)
	}
	good := p.Sign(head(), said())
	if _, err := p.call(good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	confused := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + parts[1]
	mac := hmac.New(sha256.New, p.KeySet())
	mac.Write([]byte(confused))
	confused += "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	for name, token := range map[string]string{
		"empty":                          "",
		"not a token":                    "abc",
		"another's signature":            stranger.Sign(head(), said()),
		"no signature":                   unsigned,
		"a public key for a secret":      confused,
		"RS512 in the header":            p.Sign(head("alg", "RS512"), said()),
		"lower-case rs256":               p.Sign(head("alg", "rs256"), said()),
		"no algorithm":                   p.Sign(head("alg", nil), said()),
		"no key id":                      p.Sign(head("kid", nil), said()),
		"an unknown key id":              p.Sign(head("kid", "two"), said()),
		"critical extensions":            p.Sign(head("crit", []string{"b64"}), said()),
		"another issuer":                 p.Sign(head(), said("iss", "https://accounts.google.com")),
		"no issuer":                      p.Sign(head(), said("iss", nil)),
		"another audience":               p.Sign(head(), said("aud", audience+"/")),
		"no audience":                    p.Sign(head(), said("aud", nil)),
		"a list of audiences":            p.Sign(head(), said("aud", []string{audience})),
		"another account":                p.Sign(head(), said("email", "guest@example.com")),
		"no account":                     p.Sign(head(), said("email", nil)),
		"an account in other letters":    p.Sign(head(), said("email", strings.ToUpper(account))),
		"an account that is not checked": p.Sign(head(), said("email_verified", false)),
		"expired":                        p.Sign(head(), said("exp", noon.Add(-time.Minute).Unix())),
		"no end":                         p.Sign(head(), said("exp", nil)),
		"an end beyond numbers":          p.Sign(head(), said("exp", -1e300)),
		"from the future":                p.Sign(head(), said("iat", noon.Add(time.Minute).Unix())),
		"truncated":                      good[:len(good)-2],
		"four parts":                     good + "." + parts[2],
		"padded":                         good + "=",
		"a changed claim":                parts[0] + "." + parts[1][:len(parts[1])-4] + "AAAA." + parts[2],
		"huge":                           good + strings.Repeat("A", maxToken),
	} {
		if who, err := p.call(token); !errors.Is(err, ErrNotAllowed) || who != "" {
			t.Errorf("%s: %q, %v", name, who, err)
		}
	}
	if n := p.asked.Load(); n > 2 {
		t.Errorf("made-up key ids had the keys fetched %d times", n)
	}
}

func with(m map[string]any, change []any) map[string]any {
	for i := 0; i < len(change); i += 2 {
		if m[change[i].(string)] = change[i+1]; change[i+1] == nil {
			delete(m, change[i].(string))
		}
	}
	return m
}

func TestGoogleWritesItsNameBothWays(t *testing.T) {
	p := newPlatform(t)
	if _, err := p.call(p.Sign(map[string]any{"alg": "RS256", "kid": "one"}, map[string]any{
		"iss": strings.TrimPrefix(issuer.Name, "https://"), "aud": audience, "email": account, "email_verified": true,
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	})); err != nil {
		t.Error(err)
	}
}

func TestHowATokenIsSent(t *testing.T) {
	p := newPlatform(t)
	token := p.Token(audience, account, noon)
	for name, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"bearer":            {[]string{"Bearer " + token}, true},
		"the case of it":    {[]string{"bearer " + token}, true},
		"none":              {nil, false},
		"two":               {[]string{"Bearer " + token, "Bearer " + token}, false},
		"basic":             {[]string{"Basic " + token}, false},
		"the token alone":   {[]string{token}, false},
		"two in one header": {[]string{"Bearer " + token + ", Bearer " + token}, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Authorization"] = c.headers
		if _, err := p.check.Caller(r); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreFetchedAgainWhenTheyMustBe(t *testing.T) {
	p := newPlatform(t)
	later, err := issuer.New("two")
	if err != nil {
		t.Fatal(err)
	}
	old := func() string { return p.Token(audience, account, p.now) }
	new := func() string { return later.Token(audience, account, p.now) }
	away := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for _, c := range []struct {
		name  string
		after time.Duration
		serve http.HandlerFunc
		token func() string
		ok    bool
		asked int64
	}{
		{"the first one", 0, nil, old, true, 1},
		{"while they are fresh", 59 * time.Minute, away, old, true, 0},
		{"their time is over and the issuer is away", time.Minute, nil, old, true, 1},
		{"a moment later nobody is asked", time.Second, nil, old, true, 0},
		{"a key of tomorrow, the issuer is away", between, nil, new, false, 1},
		{"the issuer has only the new key", between, later.ServeHTTP, new, true, 1},
		{"the old one is not believed any more", between, nil, old, false, 1},
		{"what is no key set", time.Hour, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) }, new, true, 1},
		{"a day without keys", 24 * time.Hour, away, new, false, 1},
		{"and back", between, later.ServeHTTP, new, true, 1},
	} {
		p.now = p.now.Add(c.after)
		if c.serve != nil {
			p.serve.Store(c.serve)
		}
		before := p.asked.Load()
		if _, err := p.call(c.token()); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := p.asked.Load() - before; n != c.asked {
			t.Errorf("%s: asked %d times", c.name, n)
		}
	}
}

func TestKeysOfAFile(t *testing.T) {
	p := newPlatform(t)
	file := t.TempDir() + "/keys.json"
	if err := os.WriteFile(file, p.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	check, err := New(Config{issuer.Name, file, audience, []string{account}}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	p.check = check
	if _, err := p.call(p.Token(audience, account, noon)); err != nil || p.asked.Load() != 0 {
		t.Error(err)
	}
}

func TestEveryPartOfTheConfigurationIsRequired(t *testing.T) {
	whole := Config{GoogleIssuer, GoogleKeys, audience, []string{account}}
	if _, err := New(whole, time.Now); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no issuer":        func(c *Config) { c.Issuer = "" },
		"no audience":      func(c *Config) { c.Audience = "" },
		"no accounts":      func(c *Config) { c.Accounts = nil },
		"an empty account": func(c *Config) { c.Accounts = []string{account, ""} },
		"no keys":          func(c *Config) { c.Keys = "" },
		"keys in clear":    func(c *Config) { c.Keys = "http://issuer.example/certs" },
		"keys by FTP":      func(c *Config) { c.Keys = "ftp://issuer.example/certs" },
	} {
		c := whole
		spoil(&c)
		if _, err := New(c, time.Now); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWhichKeysOfASetAreUsed(t *testing.T) {
	i, err := issuer.New("one")
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
		if _, err := parse([]byte(c.set)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	p := newPlatform(f)
	good := p.Token(audience, account, noon)
	f.Add(good)
	f.Add("e30.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := p.call(token); err == nil && token != good {
			t.Errorf("let in: %q", token)
		}
	})
}
