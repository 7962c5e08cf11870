package connector

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
)

func TestConnector_PreparesInstanceWithoutNetworkCall(t *testing.T) {
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
	pool, err := postgres.Open(t.Context(), postgres.Config{Instance: "p:r:i", User: "bff@p.iam", Database: "d", MaxConns: 2})
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
