package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// certAuthority is a certificate authority, as every Cloud SQL instance has its own.
type certAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newCertAuthority(t *testing.T) certAuthority {
	t.Helper()
	a := certAuthority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Google Cloud SQL Server CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}}
	a.pem, a.key = a.sign(t, a.certificate, nil)
	return a
}

// issue makes the certificate of a server, and its key.
func (a certAuthority) issue(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	certificate, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
	}, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func (a certAuthority) sign(t *testing.T, c *x509.Certificate, by *ecdsa.PrivateKey) (string, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key
}

// sqlInstance is a Postgres as Cloud SQL has them: TLS, and an account that logs in with a token.
type sqlInstance struct {
	admin *pgx.Conn
	ca    certAuthority
	addr  string
}

const iamUser = "search@p.iam"

func newSQLInstance(t *testing.T) *sqlInstance {
	t.Helper()
	at, stop, err := localstores.StartPostgres(t.Context(), "", localstores.PostgresOptions{})
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	i := &sqlInstance{ca: newCertAuthority(t), addr: u.Host}
	if i.admin, err = pgx.Connect(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.admin.Close(context.Background()) })
	certificate, key := i.ca.issue(t, "p:i")
	hba := fmt.Sprintf("hostssl all %q 127.0.0.1/32 password\nhost all %q 127.0.0.1/32 reject", iamUser, iamUser)
	for _, sql := range []string{
		// The server writes its own files: it may be another user than we are. It refuses a key
		// that others can read.
		"COPY (SELECT unnest(string_to_array('" + certificate + "', E'\\n'))) TO PROGRAM 'cat > server.crt'",
		"COPY (SELECT unnest(string_to_array('" + key + "', E'\\n'))) TO PROGRAM 'umask 077; cat > server.key'",
		"COPY (SELECT unnest(string_to_array('" + hba + "', E'\\n'))) TO PROGRAM 'cat - pg_hba.conf > new && mv new pg_hba.conf'",
		"ALTER SYSTEM SET ssl = on",
		"SELECT pg_reload_conf()",
		"CREATE ROLE \"" + iamUser + "\" LOGIN",
	} {
		i.exec(t, sql)
	}
	for ssl := ""; ssl != "on"; { // who connects after the reload finds TLS
		again, err := pgx.Connect(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.QueryRow(t.Context(), "SHOW ssl").Scan(&ssl); err != nil {
			t.Fatal(err)
		}
		again.Close(t.Context())
	}
	return i
}

func (i *sqlInstance) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := i.admin.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
}

// acceptToken lets the instance accept one token from now on.
func (i *sqlInstance) acceptToken(t *testing.T, token string) {
	i.exec(t, `ALTER ROLE "`+iamUser+`" PASSWORD '`+token+`'`)
}

func (i *sqlInstance) config() Config {
	return Config{Instance: "p:r:i", Address: i.addr, ServerCA: i.ca.pem, User: iamUser, Database: "postgres"}
}

// metadataServer is the platform's metadata server: it gives out one token, which is over at once,
// so that nobody keeps it.
type metadataServer struct {
	token    atomic.Value
	requests atomic.Int32
}

func newMetadataServer(t *testing.T, first string) *metadataServer {
	t.Helper()
	m := &metadataServer{}
	m.token.Store(first)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Add(1)
		if scope := r.FormValue("scopes"); scope != "https://www.googleapis.com/auth/sqlservice.login" {
			t.Errorf("a token for %q", scope)
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":1}`, m.token.Load())
	}))
	t.Cleanup(server.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	return m
}

func mustOpen(t *testing.T, c Config) *pgxpool.Pool {
	t.Helper()
	pool, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestPostgresOpen_DirectVerifiesCertificateAndUsesToken(t *testing.T) {
	i := newSQLInstance(t)
	i.acceptToken(t, "first")
	m := newMetadataServer(t, "first")

	pool := mustOpen(t, i.config())
	if n := m.requests.Load() + pool.Stat().TotalConns(); n != 0 {
		t.Error("asked or dialled before anybody wanted it")
	}
	var user string
	var encrypted bool
	if err := pool.QueryRow(t.Context(), "SELECT current_user, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&user, &encrypted); err != nil {
		t.Fatal(err)
	}
	if user != iamUser || !encrypted {
		t.Errorf("%s, encrypted: %t", user, encrypted)
	}

	i.acceptToken(t, "second")
	m.token.Store("second")
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("a connection outlives its token: %v", err)
	}
	pool.Reset()
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("a new connection after the old token was over: %v", err)
	}
	m.token.Store("first")
	pool.Reset()
	if err := pool.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "first") {
		t.Errorf("with a token that is over: %v", err)
	}
	m.token.Store("second")

	both := i.config()
	both.ServerCA = newCertAuthority(t).pem + both.ServerCA
	if err := mustOpen(t, both).Ping(t.Context()); err != nil {
		t.Errorf("while the authority changes: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"another's authority":     {func(c *Config) { c.ServerCA = newCertAuthority(t).pem }, "unknown authority"},
		"another instance":        {func(c *Config) { c.Instance = "p:r:other" }, `is of "p:i", not of "p:other"`},
		"another project":         {func(c *Config) { c.Instance = "q:r:i" }, `not of "q:i"`},
		"a project with a domain": {func(c *Config) { c.Instance = "example.com:p:r:i" }, `not of "example.com:p:i"`},
		"a server without TLS":    {func(c *Config) { c.Address = addrWithoutTLS(t) }, "refused TLS"},
	} {
		cfg := i.config()
		c.change(&cfg)
		err := mustOpen(t, cfg).Ping(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) || !IsUnavailable(err) || strings.Contains(err.Error(), "second") {
			t.Errorf("%s: %v, away: %t", name, err, IsUnavailable(err))
		}
	}
}

// addrWithoutTLS is the address of a Postgres that has no TLS.
func addrWithoutTLS(t *testing.T) string {
	u, err := url.Parse(pgtest.EmptyURL(t))
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestPostgresOpen_DirectWithoutTokenIsUnavailableInTime(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-release }))
	defer hung.Close()
	defer close(release)
	for name, host := range map[string]string{"gone": "127.0.0.1:1", "hung": strings.TrimPrefix(hung.URL, "http://")} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GCE_METADATA_HOST", host)
			pool := mustOpen(t, Config{Instance: "p:r:i", Address: "127.0.0.1:1", ServerCA: newCertAuthority(t).pem, User: iamUser, Database: "d"})
			ctx, cancel := context.WithTimeout(t.Context(), 10*connectTimeout) // never reached
			defer cancel()
			if err := pool.Ping(ctx); !IsUnavailable(err) || ctx.Err() != nil || !strings.Contains(err.Error(), "token") {
				t.Errorf("%v, away: %t", err, IsUnavailable(err))
			}
		})
	}
}
