package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// configureDirect sets up a pool for the private address of a Cloud SQL instance, without Google's
// connector. Each connection uses TLS, checks that the server is this instance, and sends as its
// password an access token of the process's account that is valid only for database logins. Cloud
// SQL calls this manual IAM database authentication. The process has no client certificate, so the
// instance must not require one. Errors name the wrong setting; nothing is dialled.
func configureDirect(cfg *pgxpool.Config, c Config) error {
	host, port, err := net.SplitHostPort(c.Address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil || host == "" {
		return errors.New("postgres: CLOUDSQL_ADDRESS must be host:port in a program without the connector")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(c.ServerCA)) {
		return errors.New("postgres: CLOUDSQL_CA must have a certificate, PEM, in a program without the connector")
	}
	name, err := certificateName(c.Instance)
	if err != nil {
		return err
	}
	cfg.ConnConfig.Host, cfg.ConnConfig.Port = host, uint16(number)
	cfg.ConnConfig.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The certificate's name is no host name, so the standard check would fail.
		// VerifyConnection checks the certificate instead.
		InsecureSkipVerify: true,
		VerifyConnection:   func(s tls.ConnectionState) error { return verifyCertificate(s.PeerCertificates, roots, name) },
	}
	cfg.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		token, err := gcptoken.Default().AccessToken(ctx, gcptoken.ScopeSQLLogin)
		if err != nil {
			return tokenError{err}
		}
		conn.Password = token
		return nil
	}
	return nil
}

// tokenError means that no access token for the login could be had. IsUnavailable treats it as an
// unreachable Postgres.
type tokenError struct{ error }

func (e tokenError) Error() string { return "postgres: get a token to log in: " + e.error.Error() }

func (e tokenError) Unwrap() error { return e.error }

// certificateName returns the common name of an instance's certificate, "project:instance".
// instance is "project:region:instance"; a project may have a domain prefix
// ("example.com:project").
func certificateName(instance string) (string, error) {
	parts := strings.Split(instance, ":")
	if n := len(parts); n < 3 || n > 4 || strings.Contains(":"+instance+":", "::") {
		return "", errors.New("postgres: CLOUDSQL_INSTANCE must be project:region:instance")
	}
	return strings.Join(append(parts[:len(parts)-2:len(parts)-2], parts[len(parts)-1]), ":"), nil
}

// verifyCertificate accepts a certificate with the common name name, issued by one of roots. Cloud
// SQL has a certificate authority per instance.
func verifyCertificate(certificates []*x509.Certificate, roots *x509.CertPool, name string) error {
	if len(certificates) == 0 {
		// unreachable: TLS requires a server certificate
		return errors.New("postgres: the server shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range certificates[1:] {
		between.AddCert(c)
	}
	if _, err := certificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return fmt.Errorf("postgres: the server's certificate: %w", err)
	}
	if is := certificates[0].Subject.CommonName; is != name {
		return fmt.Errorf("postgres: the server's certificate is of %q, not of %q", is, name)
	}
	return nil
}
