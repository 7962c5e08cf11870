package detail

import (
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestFunctions_AreRegistered(t *testing.T) {
	t.Parallel()
	patterns := map[string]string{}
	for _, f := range web.Functions() {
		patterns[f.Name] = f.Pattern
	}
	if patterns["Detail"] != "GET /bff/consumer/v1/hotels/{propertyId}" || patterns["Availability"] != "GET /bff/consumer/v1/hotels/{propertyId}/availability" {
		t.Errorf(`got %v; want patterns["Detail"] = "GET /bff/consumer/v1/hotels/{propertyId}", patterns["Availability"] = "GET /bff/consumer/v1/hotels/{propertyId}/availability"`, patterns)
	}
}

func TestOpen_InvalidSettingIsNamed(t *testing.T) {
	for _, name := range []string{"REDIS_ADDR", "SEARCH_URL", "PROPERTY_URL"} {
		t.Setenv(name, "") // restored afterwards
	}
	t.Setenv("HANDOFF_LINK", "https://everybody.example/book")
	if _, err := openDetail(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "tenantSlug") {
		t.Errorf(`got %v; want err set, err.Error() containing "tenantSlug"`, err)
	}
	if _, err := openAvailability(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "wiring") {
		t.Errorf(`got %v; want err set, err.Error() containing "wiring"`, err)
	}
}
