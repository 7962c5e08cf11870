package tenantstub

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newTestBFF returns a BFF with a fake internal endpoint and a clock after noon, and a token issued
// at noon.
func newTestBFF(t *testing.T, later time.Duration, endpoint http.HandlerFunc) (*BFF, string) {
	t.Helper()
	keys, err := handoff.ParseKeys("hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4=")
	if err != nil {
		t.Fatal(err)
	}
	token, err := keys.Sign(&handoff.Handoff{
		ID: id.New(id.Handoff, noon), GuestSessionID: id.New(id.Session, noon), TenantID: id.New(id.Tenant, noon), PropertyID: id.New(id.Property, noon),
		Dates:  stay.Dates{CheckIn: stay.DateOf(noon.AddDate(0, 0, 10)), CheckOut: stay.DateOf(noon.AddDate(0, 0, 13))},
		Adults: 2, Rooms: 1, Currency: "AFN", Locale: "ps-AF", MintedAt: noon,
	})
	if err != nil {
		t.Fatal(err)
	}
	google, err := oidctest.New("one")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	return New(server.URL, keys, google, func() time.Time { return noon.Add(later) }), token
}

func TestBootstrap_ExpiredTokenMakesNoCall(t *testing.T) {
	t.Parallel()
	b, token := newTestBFF(t, handoff.TTL, func(http.ResponseWriter, *http.Request) { t.Error("the endpoint was called") })
	if _, err := b.Bootstrap(t.Context(), token); problem.FromError(err).Kind != problem.HandoffExpired {
		t.Error(err)
	}
}

func TestBootstrap_LostResponseIsRetriedWithSameKey(t *testing.T) {
	t.Parallel()
	var keys []string
	b, token := newTestBFF(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	answer, err := b.Bootstrap(t.Context(), token)
	if err != nil || answer.Status != http.StatusTeapot || len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("%+v %v, keys %q", answer, err, keys)
	}
}

func TestBootstrap_EachCallUsesANewKey(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	b, token := newTestBFF(t, 0, func(_ http.ResponseWriter, r *http.Request) { keys[r.Header.Get("Idempotency-Key")] = true })
	for range 2 {
		if _, err := b.Bootstrap(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
}

func TestBootstrap_UnreachableEndpointIsUnavailable(t *testing.T) {
	t.Parallel()
	b, token := newTestBFF(t, 0, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := b.Bootstrap(t.Context(), token); problem.FromError(err).Kind != problem.UpstreamUnavailable {
		t.Error(err)
	}
}
