package invalidate

import (
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestInvalidateInit_RegistersFourRoutes(t *testing.T) {
	doors := map[string]string{}
	for _, f := range web.Functions() {
		if !strings.HasPrefix(f.Name, "Test") {
			doors[f.Name] = f.Pattern
		}
	}
	want := map[string]string{
		"ThemePublished": "POST /internal/events/theme-published", "ListingIndexed": "POST /internal/events/listing-indexed",
		"TenantSuspended": "POST /internal/events/tenant-suspended", "TenantReinstated": "POST /internal/events/tenant-reinstated",
	}
	for name, pattern := range want {
		if doors[name] != pattern {
			t.Errorf("%s is at %q", name, doors[name])
		}
	}
	if len(doors) != len(want) {
		t.Errorf("%v", doors)
	}
}

func TestInvalidateOpen_DialsLazilyAndNamesMissingSettings(t *testing.T) {
	t.Setenv("REDIS_ADDR", "")
	t.Setenv("DATABASE_URL", "")
	if _, err := open(t.Context()); err == nil || !strings.Contains(err.Error(), "REDIS_ADDR") {
		t.Errorf("%v", err)
	}
	t.Setenv("REDIS_ADDR", "127.0.0.1:1")
	if _, err := open(t.Context()); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("%v", err)
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
			t.Errorf("%s comes by %s", subject, got)
		}
	}
}
