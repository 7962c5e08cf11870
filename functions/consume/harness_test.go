package consume

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/caller/issuer"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup/basis"
)

const (
	audience  = "https://consume.example"
	account   = "bff-tenant@platform.iam.gserviceaccount.com"
	second    = "bff-tenant-canary@platform.iam.gserviceaccount.com"
	suspected = "melmastoon.bff.consumer.bot_suspected.v1"
)

var theIssuer = sync.OnceValues(func() (*issuer.Issuer, error) { return issuer.New("one") })

// house is the function with real stores, which tests take away, and an issuer of their own.
type house struct {
	*functest.House
	consume *Consume
	issuer  *issuer.Issuer
}

func newHouse(t testing.TB) *house { return houseIn(functest.New(t)) }

func houseIn(base *functest.House) *house {
	t := base.T
	t.Helper()
	h := &house{House: base}
	h.API, h.Base = "../../api/internal.openapi.yaml", ""
	h.Set(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	var err error
	if h.issuer, err = theIssuer(); err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(h.issuer)
	t.Cleanup(keys.Close)
	h.consume, err = build(context.Background(), environment{
		Environment: basis.Environment{Env: "test", RedisAddr: h.Redis.Addr, DatabaseURL: h.Database},
		Peppers:     functest.Ring(t), Keys: keysOf(t, active+","+grace),
		Issuer: issuer.Name, IssuerKeys: keys.URL, Audience: audience, Accounts: []string{account, second},
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

// answer is what a caller got.
type answer struct {
	*functest.Answer
	consumed
}

func (a *answer) is(status int, code string) bool {
	return a.StatusCode == status && (code == "" || strings.HasSuffix(a.Code, "."+code))
}

// use sends m's token as an instance of the tenant's BFF does; headers replace others.
func (h *house) use(m minted, by string, headers ...string) *answer {
	h.T.Helper()
	return h.post(m.id, fmt.Sprintf(`{"token":%q,"consumedBy":%q}`, m.token, by), headers...)
}

func (h *house) post(id, body string, headers ...string) *answer {
	h.T.Helper()
	all := append([]string{
		"Content-Type", "application/json", "User-Agent", "bff-tenant/1.0",
		"Authorization", "Bearer " + h.issuer.Token(audience, account, h.Now()),
	}, headers...)
	a := &answer{Answer: h.Ask("POST", "/internal/handoff/"+id+"/consume", "", body, all...)}
	if a.StatusCode < 400 {
		a.Into(h.T, &a.consumed)
	}
	if a.Header.Get("Set-Cookie") != "" || !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		h.T.Errorf("%v", a.Header)
	}
	return a
}

// read reads one value.
func read[T any](h *house, sql string, args ...any) (v T) {
	h.T.Helper()
	if err := h.DB.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.T.Fatal(err)
	}
	return v
}

func (h *house) used(m minted) bool {
	return read[bool](h, `SELECT consumed FROM bff_consumer.handoff_replay_log WHERE id = $1`, m.id)
}

// reports is how many events and verdicts tell of a second use.
func (h *house) reports() (events, verdicts int) {
	return h.Count("outbox WHERE topic = $1", suspected), h.Count("bot_score_log WHERE verdict = 'suspect'")
}
