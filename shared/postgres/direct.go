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

// configureDirect lets a pool reach a Cloud SQL instance by its private address: TLS with the instance that we mean and no other, and as the
// password a token of our account that is good for logging in and nothing else. It is what Cloud SQL calls manual IAM database
// authentication; unlike the connector it has no certificate of ours, so the instance must not ask for one.
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
		// The certificate is of a name that is no host's, so the usual check cannot be made. VerifyConnection makes one.
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

// tokenError says that there is no token to log in with. Postgres is as good as away.
type tokenError struct{ error }

func (e tokenError) Error() string { return "postgres: get a token to log in: " + e.error.Error() }

func (e tokenError) Unwrap() error { return e.error }

// certificateName is the name that Cloud SQL certifies an instance by, "project:instance". A project may have a domain before it.
func certificateName(instance string) (string, error) {
	parts := strings.Split(instance, ":")
	if n := len(parts); n < 3 || n > 4 || strings.Contains(":"+instance+":", "::") {
		return "", errors.New("postgres: CLOUDSQL_INSTANCE must be project:region:instance")
	}
	return strings.Join(append(parts[:len(parts)-2:len(parts)-2], parts[len(parts)-1]), ":"), nil
}

// verifyCertificate accepts the certificate of one instance, from the authority that is this instance's alone.
func verifyCertificate(certificates []*x509.Certificate, roots *x509.CertPool, name string) error {
	if len(certificates) == 0 {
		return errors.New("postgres: the server shows no certificate") // unreachable: TLS has one from a server
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
