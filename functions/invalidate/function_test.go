package invalidate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestInvalidateInit_RegistersFourRoutes(t *testing.T) {
	got := map[string]string{}
	for _, f := range web.Functions() {
		if !strings.HasPrefix(f.Name, "Test") {
			got[f.Name] = f.Pattern
		}
	}
	want := map[string]string{
		"ThemePublished": "POST /internal/events/theme-published", "ListingIndexed": "POST /internal/events/listing-indexed",
		"TenantSuspended": "POST /internal/events/tenant-suspended", "TenantReinstated": "POST /internal/events/tenant-reinstated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
}

func TestInvalidateOpen_DialsLazilyAndNamesMissingSettings(t *testing.T) {
	t.Setenv("REDIS_ADDR", "")
	t.Setenv("DATABASE_URL", "")
	if _, err := open(t.Context()); err == nil || !strings.Contains(err.Error(), "REDIS_ADDR") {
		t.Errorf("without REDIS_ADDR: got %v, want an error that names it", err)
	}
	t.Setenv("REDIS_ADDR", "127.0.0.1:1")
	if _, err := open(t.Context()); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("without DATABASE_URL: got %v, want an error that names it", err)
	}
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing")
	p, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.db.Close()
}

func TestSubscriptionName_MatchesBroker(t *testing.T) {
	for subject, want := range map[string]string{
		subjectThemePublished: "bff-consumer.theme.published.v1", subjectListingIndexed: "bff-consumer.search_aggregation.listing.indexed.v1",
		subjectTenantSuspended: "bff-consumer.tenant.suspended.v1", subjectTenantReinstated: "bff-consumer.tenant.reinstated.v1",
	} {
		if got := inbox.SubscriptionName(subject); got != want {
			t.Errorf("%s: got %s, want %s", subject, got, want)
		}
	}
}
