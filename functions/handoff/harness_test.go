package handoff

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	pattern  = "POST " + web.Base + "/handoff"
	handoffs = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	retired  = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
)

// house is the function with real stores, which tests take away, and upstreams that tests command.
type house struct {
	*functest.House
	up   *functest.Upstreams
	keys handoff.Keys
}

func newHouse(t testing.TB) *house { return houseIn(functest.New(t)) }

func houseIn(base *functest.House) *house {
	base.T.Helper()
	h := &house{House: base, up: newUpstreams(base.T)}
	h.open(functest.Environment(h.T, h.Database, h.Redis.Addr, h.up.URL))
	return h
}

func (h *house) open(e setup.Environment) {
	h.T.Helper()
	h.Personal = true
	h.Open(e)
	h.mount(handoffs + "," + retired)
}

// mount puts a function with these keys in front.
func (h *house) mount(keys string) {
	h.T.Helper()
	h.keys = keysOf(h.T, keys)
	h.Mount(pattern, New(h.Parts, h.keys, handoff.Link{}).Serve)
}

func keysOf(t testing.TB, s string) handoff.Keys {
	t.Helper()
	k, err := handoff.ParseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// answer is what a client got.
type answer struct {
	*functest.Answer
	minted
}

func (a *answer) replayed() bool { return a.Header.Get("Idempotency-Replayed") == "true" }

// token is the one in the URL.
func (a *answer) token(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(a.URL)
	if err != nil || a.URL == "" {
		t.Fatalf("no URL in %d %s", a.StatusCode, a.Text)
	}
	return u.Query().Get("h")
}

// post may be called by several at once.
func (h *house) post(body string, headers ...string) *answer {
	h.T.Helper()
	a := &answer{Answer: h.Ask("POST", "/handoff", "", body, headers...)}
	if a.StatusCode < 400 {
		a.Into(h.T, &a.minted)
	}
	return a
}

// mint is a post that must be answered with 201.
func (h *house) mint(body string, headers ...string) *answer {
	h.T.Helper()
	a := h.post(body, headers...)
	if a.StatusCode != http.StatusCreated {
		h.T.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	return a
}

// guest is the headers of a guest who has a session, and of a key.
func (h *house) guest(key string) []string {
	cookie := h.mint(h.body(), "Idempotency-Key", "of-the-first-visit").Cookie()
	return []string{"Cookie", "gms_id=" + cookie, "Idempotency-Key", key}
}

// body is a valid request; with replaces parts of it.
func (h *house) body(with ...string) string {
	in := h.Now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":1,"rooms":1,"childrenAges":[7]}}`,
		tenantID(1), propertyID(1), in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	return functest.Replace(h.T, body, with...)
}

// more is a valid request with further members.
func (h *house) more(members string) string {
	return strings.TrimSuffix(h.body(), "}") + "," + members + "}"
}
