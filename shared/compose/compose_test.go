package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

func TestProblem_MapsUpstreamErrors(t *testing.T) {
	failure := func(r upstream.Reason) error {
		return fmt.Errorf("search: %w", &upstream.Error{Upstream: "search", Reason: r})
	}
	for name, c := range map[string]struct {
		err  error
		want problem.Kind
	}{
		"not found":    {fmt.Errorf("x: %w", upstream.ErrNotFound), problem.ResourceNotFound},
		"timeout":      {failure(upstream.Timeout), problem.UpstreamBudgetExceeded},
		"budget":       {failure(upstream.Budget), problem.UpstreamBudgetExceeded},
		"deadline":     {context.DeadlineExceeded, problem.UpstreamBudgetExceeded},
		"unavailable":  {failure(upstream.Unavailable), problem.UpstreamUnavailable},
		"breaker open": {failure(upstream.BreakerOpen), problem.UpstreamUnavailable},
		"bad response": {failure(upstream.BadResponse), problem.UpstreamUnavailable},
		"other error":  {errors.New("a bug"), problem.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem.FromError(Problem(c.err))
			if p.Kind != c.want || c.want.Retriable && p.RetryAfter == 0 {
				t.Errorf("got %s with Retry-After %s, want %s", p.Kind.Code, p.RetryAfter, c.want.Code)
			}
			if !errors.Is(p, c.err) && c.want != problem.Internal {
				t.Errorf("the problem does not wrap %v", c.err)
			}
		})
	}
}

func TestDegradedPart_NamesPartAndReason(t *testing.T) {
	if got := DegradedPart("pricing", nil); got != nil {
		t.Errorf("without an error: got %v, want nil", got)
	}
	for want, err := range map[string]error{
		"breaker-open": &upstream.Error{Upstream: "pricing", Reason: upstream.BreakerOpen},
		"timeout":      context.DeadlineExceeded,
		"unavailable":  errors.New("other"),
	} {
		if got := DegradedPart("pricing", err); len(got) != 1 || got[0].Part != "pricing" || got[0].Reason != want {
			t.Errorf("error %v: got %v, want part pricing with reason %s", err, got, want)
		}
	}
}

// fakeThemeConfig simulates theme-config: tenant 0 is unknown, every other tenant has a brand.
type fakeThemeConfig struct {
	*httptest.Server
	calls      atomic.Int64
	hangTenant atomic.Value // id of the tenant whose request hangs
}

func newFetcher(t *testing.T) (*Fetcher, *fakeThemeConfig, *redistest.Counter) {
	t.Helper()
	th := &fakeThemeConfig{}
	th.hangTenant.Store("")
	th.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		th.calls.Add(1)
		id := strings.Split(r.URL.Path, "/")[4]
		w.Header().Set("Content-Type", "application/json")
		switch id {
		case th.hangTenant.Load():
			<-r.Context().Done()
		case tenantID(0):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{}`)
		default:
			fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":"#aabbcc","logoUrl":"https://l.example/x.svg","brandName":{"default":"B"}}`, id)
		}
	}))
	t.Cleanup(th.Close)
	up, err := upstream.New(upstream.Config{SearchURL: th.URL, PricingURL: th.URL, PropertyURL: th.URL, ThemeURL: th.URL})
	if err != nil {
		t.Fatal(err)
	}
	rdb, keys := redistest.New(t), redisclient.Keys{Env: "test"}
	return New(rdb, keys, cache.New(rdb, keys, time.Now, "test"), up), th, redistest.Count(rdb)
}

func tenantID(n int) string { return fmt.Sprintf("tnt_%026d", n) }

func tenantIDs(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = tenantID(i)
	}
	return list
}

func TestBrands_FetchedOnceThenReadInOneRoundTrip(t *testing.T) {
	p, th, trips := newFetcher(t)
	brands, _, missing := p.Brands(t.Context(), tenantIDs(40))
	if len(brands) != 39 || brands[tenantID(0)] != nil || len(missing) != 0 || th.calls.Load() != 40 {
		t.Fatalf("got %d brands, %d calls, degraded %v, want 39, 40 and none", len(brands), th.calls.Load(), missing)
	}
	trips.TakeCount()
	again, _, missing := p.Brands(t.Context(), tenantIDs(40))
	if n := trips.TakeCount(); n != 1 || len(again) != 39 || len(missing) != 0 || th.calls.Load() != 40 {
		t.Errorf("second call: got %d round trips, %d brands, %d calls, degraded %v, want 1, 39, 40 and none", n, len(again), th.calls.Load(), missing)
	}
}

func TestBrands_SilentTenantDelaysNoOther(t *testing.T) {
	p, th, _ := newFetcher(t)
	th.hangTenant.Store(tenantID(3))
	brands, _, missing := p.Brands(t.Context(), tenantIDs(6)[1:])
	if len(brands) != 4 || len(missing) != 1 || missing[0].Part != "theme" || missing[0].Reason != "timeout" {
		t.Errorf("got %d brands, degraded %v, want 4 and theme with a timeout", len(brands), missing)
	}
}
