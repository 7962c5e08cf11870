package postgres

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

func TestOpenRefusesAConfigurationThatCannotWork(t *testing.T) {
	for rule, c := range map[string]Config{
		"nothing":              {},
		"two places":           {URL: "postgres://h/d", Instance: "p:r:i", User: "u", Database: "d"},
		"not a URL":            {URL: "postgres://u:secret@h:port/d"},
		"instance without who": {Instance: "p:r:i", Database: "d"},
		"instance without db":  {Instance: "p:r:i", User: "u"},
	} {
		t.Run(rule, func(t *testing.T) {
			pool, err := Open(t.Context(), c)
			if err == nil {
				pool.Close()
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

func TestOpenDialsNothing(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	proxy.Break()
	pool, err := Open(t.Context(), Config{URL: url + "&pool_min_conns=2"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Stat().NewConnsCount(); n != 0 {
		t.Errorf("%d connections before anybody asked", n)
	}
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("a broken database answers")
	}
	proxy.Heal()
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("a healed database: %v", err)
	}
}

func TestAHungDatabaseCostsTheCallersTimeOnly(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	pool, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	proxy.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := pool.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v, want the deadline", err)
	}
}

func TestAPoolerMayStandBetween(t *testing.T) {
	pool, err := Open(t.Context(), Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for range 3 {
		var n int
		if err := pool.QueryRow(t.Context(), "SELECT $1::int", 7).Scan(&n); err != nil || n != 7 {
			t.Fatalf("%d %v", n, err)
		}
	}
	var prepared int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&prepared); err != nil || prepared != 0 {
		t.Errorf("%d named statements in the session: %v", prepared, err)
	}
}

func TestACloudSQLInstanceIsPreparedWithoutACall(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bff@p.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"token_uri":   "https://127.0.0.1:1/token", // a call would fail
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, account, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	pool, err := Open(t.Context(), Config{Instance: "p:r:i", User: "bff@p.iam", Database: "d", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	cfg := pool.Config()
	if cfg.ConnConfig.User != "bff@p.iam" || cfg.ConnConfig.Database != "d" || cfg.ConnConfig.TLSConfig != nil || cfg.MaxConns != 2 {
		t.Errorf("user %q database %q TLS %v pool %d", cfg.ConnConfig.User, cfg.ConnConfig.Database, cfg.ConnConfig.TLSConfig, cfg.MaxConns)
	}
	if err := pool.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("ping: %v, want a refused call for a token", err)
	}
}
