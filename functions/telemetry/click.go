package telemetry

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// click is what a client can know of click.recorded.v1 (docs/spec/events.md#click-recorded).
type click struct {
	common
	Kind       string `json:"kind"`
	TenantID   string `json:"tenantId"`
	PropertyID string `json:"propertyId"`
	Position   *int   `json:"position"`
	Page       *int   `json:"page"`
	SortKey    string `json:"sortKey"`
	OccurredAt string `json:"occurredAt"`
}

// sourceOf says, by the kind of a click, how the guest came to the hotel, in the words of the recently viewed.
var sourceOf = map[string]string{
	"listing-card":     "search-list",
	"map-pin":          "search-map",
	"similar-property": "detail-link",
	"wishlist-card":    "wishlist",
	"brand-peek":       "search-list", // the brand is on the card
}

var kinds = slices.Sorted(maps.Keys(sourceOf))

const maxPosition = 10_000

// Click answers POST /telemetry/click.
func (d *Desk) Click(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		click
		Events []click `json:"events"`
	}
	if err := web.DecodeBeacon(r, &in); err != nil {
		return err
	}
	list, err := reports(&in.click, in.Events)
	if err != nil {
		return err
	}
	return d.take(w, r, list)
}

func (c *click) subject() string { return event.ClickRecorded{}.Subject() }

func (c *click) about() *common { return &c.common }

func (c *click) when() string { return c.OccurredAt }

func (c *click) check(f *faults) {
	f.oneOf("kind", c.Kind, kinds...)
	f.id("tenantId", id.Tenant, c.TenantID, true)
	f.id("propertyId", id.Property, c.PropertyID, true)
	f.count("position", c.Position)
	f.count("page", c.Page)
	if c.SortKey != "" {
		f.oneOf("sortKey", c.SortKey, "recommended", "price-asc", "price-desc", "rating-desc", "distance-asc")
	}
	f.instant("occurredAt", c.OccurredAt)
}

func (c *click) tell(g *admission.Guest, at time.Time, _ func(id.Prefix) string) event.Payload {
	return event.ClickRecorded{
		GuestSessionID: g.ID, Kind: c.Kind, TenantID: c.TenantID, PropertyID: c.PropertyID, SearchSessionID: c.SearchSessionID,
		Position: value(c.Position), Page: value(c.Page), SortKey: c.SortKey, OccurredAt: at,
	}
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func (c *click) viewed() (property, tenant, source string) {
	return c.PropertyID, c.TenantID, sourceOf[c.Kind]
}
