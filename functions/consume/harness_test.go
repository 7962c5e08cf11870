package consume

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
)

const (
	audience            = "https://consume.example"
	callerAccount       = "bff-tenant@platform.iam.gserviceaccount.com"
	secondAccount       = "bff-tenant-canary@platform.iam.gserviceaccount.com"
	botSuspectedSubject = "melmastoon.bff.consumer.bot_suspected.v1"
)

var sharedIssuer = sync.OnceValues(func() (*oidctest.Issuer, error) { return oidctest.New("one") })

// harness serves the function with real stores, which tests can break, and with a fake token
// issuer.
type harness struct {
	*functest.Harness
	consume *Consume
	issuer  *oidctest.Issuer
}

func newHarness(t testing.TB) *harness { return newHarnessWith(functest.New(t)) }

func newHarnessWith(base *functest.Harness) *harness {
	t := base.T
	t.Helper()
	h := &harness{Harness: base}
	h.APIDocument, h.BasePath = "../../api/internal.openapi.yaml", ""
	h.Set(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	var err error
	if h.issuer, err = sharedIssuer(); err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(h.issuer)
	t.Cleanup(keys.Close)
	h.consume, err = build(context.Background(), environment{
		Environment: config.Environment{Env: "test", RedisAddr: h.Redis.Addr, Postgres: postgres.Config{URL: h.Database}},
		Peppers:     functest.Keyring(t), Keys: parseKeys(t, activeKey+","+graceKey),
		Issuer: oidctest.IssuerURL, IssuerKeys: keys.URL, Audience: audience, Accounts: []string{callerAccount, secondAccount},
	}, h.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Heal()
		h.consume.db.Close()
	})
	h.Mount("POST /internal/handoff/{id}/consume", h.consume.Serve)
	return h
}

// response is the answer to a caller.
type response struct {
	*functest.Result
	consumeResponse
}

// hasStatus reports whether the answer has the status and, unless code is empty, the problem code.
func (a *response) hasStatus(status int, code string) bool {
	return a.StatusCode == status && (code == "" || strings.HasSuffix(a.Code, "."+code))
}

// postConsume sends m's token as the instance "by" of a tenant's BFF. headers adds or replaces
// headers.
func (h *harness) postConsume(m mintedHandoff, by string, headers ...string) *response {
	h.T.Helper()
	return h.post(m.id, fmt.Sprintf(`{"token":%q,"consumedBy":%q}`, m.token, by), headers...)
}

func (h *harness) post(id, body string, headers ...string) *response {
	h.T.Helper()
	all := append([]string{
		"Content-Type", "application/json", "User-Agent", "bff-tenant/1.0",
		"Authorization", "Bearer " + h.issuer.Token(audience, callerAccount, h.Now()),
	}, headers...)
	a := &response{Result: h.Do("POST", "/internal/handoff/"+id+"/consume", "", body, all...)}
	if a.StatusCode < 400 {
		a.Decode(h.T, &a.consumeResponse)
	}
	if a.Header.Get("Set-Cookie") != "" || !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		h.T.Errorf(`got headers %v; want Set-Cookie = "", Cache-Control containing "no-store"`, a.Header)
	}
	return a
}

// queryValue returns the one value that a query selects.
func queryValue[T any](h *harness, sql string, args ...any) (v T) {
	h.T.Helper()
	if err := h.DB.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.T.Fatal(err)
	}
	return v
}

func (h *harness) isConsumed(m mintedHandoff) bool {
	return queryValue[bool](h, `SELECT consumed FROM bff_consumer.handoff_replay_log WHERE id = $1`, m.id)
}

// countReports returns the numbers of events and verdicts about replays.
func (h *harness) countReports() (events, verdicts int) {
	return h.Count("outbox WHERE topic = $1", botSuspectedSubject), h.Count("bot_score_log WHERE verdict = 'suspect'")
}
