package handoff

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

const (
	pattern    = "POST " + web.BasePath + "/handoff"
	activeKey  = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	retiredKey = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
)

// harness serves the function with real stores, which tests can break, and with controllable
// upstreams.
type harness struct {
	*functest.Harness
	upstreams *functest.Upstreams
	keys      handoff.Keys
}

func newHarness(t testing.TB) *harness { return newHarnessWith(functest.New(t)) }

func newHarnessWith(base *functest.Harness) *harness {
	base.T.Helper()
	h := &harness{Harness: base, upstreams: newUpstreams(base.T)}
	h.open(functest.Environment(h.T, h.Database, h.Redis.Addr, h.upstreams.URL))
	return h
}

func (h *harness) open(e wiring.Environment) {
	h.T.Helper()
	h.Personal = true
	h.BuildDeps(e)
	h.mountWithKeys(activeKey + "," + retiredKey)
}

// mountWithKeys replaces the function by one that signs and verifies with keys.
func (h *harness) mountWithKeys(keys string) {
	h.T.Helper()
	h.keys = parseKeys(h.T, keys)
	h.Mount(pattern, New(h.Deps, h.keys, handoff.Link{}).Serve)
}

func parseKeys(t testing.TB, s string) handoff.Keys {
	t.Helper()
	k, err := handoff.ParseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// response is the answer to a client.
type response struct {
	*functest.Result
	mintResponse
}

func (a *response) replayed() bool { return a.Header.Get("Idempotency-Replayed") == "true" }

// token returns the token of the booking URL.
func (a *response) token(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(a.URL)
	if err != nil || a.URL == "" {
		t.Fatalf("got %d %s; want a URL", a.StatusCode, a.Text)
	}
	return u.Query().Get("h")
}

// post sends a request. Safe for concurrent use.
func (h *harness) post(body string, headers ...string) *response {
	h.T.Helper()
	a := &response{Result: h.Do("POST", "/handoff", "", body, headers...)}
	if a.StatusCode < 400 {
		a.Decode(h.T, &a.mintResponse)
	}
	return a
}

// mustMint sends a request and fails the test unless the status is 201.
func (h *harness) mustMint(body string, headers ...string) *response {
	h.T.Helper()
	a := h.post(body, headers...)
	if a.StatusCode != http.StatusCreated {
		h.T.Fatalf("got %d %s; want status %v", a.StatusCode, a.Text, http.StatusCreated)
	}
	return a
}

// guestHeaders begins a session with a mint and returns its cookie and an Idempotency-Key as
// headers.
func (h *harness) guestHeaders(key string) []string {
	cookie := h.mustMint(h.requestBody(), "Idempotency-Key", "of-the-first-request").SessionCookie()
	return []string{"Cookie", "gms_id=" + cookie, "Idempotency-Key", key}
}

// requestBody returns a valid body. with holds pairs of an old and a new part.
func (h *harness) requestBody(with ...string) string {
	in := h.Now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":1,"rooms":1,"childrenAges":[7]}}`,
		tenantID(1), propertyID(1), in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	return functest.ReplaceInBody(h.T, body, with...)
}

// requestBodyWith returns a valid body with further members.
func (h *harness) requestBodyWith(members string) string {
	return strings.TrimSuffix(h.requestBody(), "}") + "," + members + "}"
}
