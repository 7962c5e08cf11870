package telemetry

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// click holds the members of click.recorded.v1 (docs/spec/events.md#click-recorded) that a client
// reports.
type click struct {
	commonFields
	Kind       string `json:"kind"`
	TenantID   string `json:"tenantId"`
	PropertyID string `json:"propertyId"`
	Position   *int   `json:"position"`
	Page       *int   `json:"page"`
	SortKey    string `json:"sortKey"`
	OccurredAt string `json:"occurredAt"`
}

// viewSourceByKind maps the kind of a click to the source of an entry in the recently viewed
// properties.
var viewSourceByKind = map[string]string{
	"listing-card":     "search-list",
	"map-pin":          "search-map",
	"similar-property": "detail-link",
	"wishlist-card":    "wishlist",
	"brand-peek":       "search-list", // the brand is shown on the card of a list
}

var clickKinds = slices.Sorted(maps.Keys(viewSourceByKind))

const maxPosition = 10_000

// Click answers POST /telemetry/click: 1 to 50 clicks, with the costs and failures of Handlers. The
// clicked properties join the guest's list of viewed properties in Redis.
func (h *Handlers) Click(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		click
		Events []click `json:"events"`
	}
	if err := web.DecodeBeacon(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	list, err := parseReports(&in.click, in.Events)
	if err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	return h.record(w, r, list)
}

func (c *click) subject() string { return event.ClickRecorded{}.Subject() }

func (c *click) fields() *commonFields { return &c.commonFields }

func (c *click) occurredAt() string { return c.OccurredAt }

func (c *click) check(f *validator) {
	f.oneOf("kind", c.Kind, clickKinds...)
	f.id("tenantId", id.Tenant, c.TenantID, true)
	f.id("propertyId", id.Property, c.PropertyID, true)
	f.position("position", c.Position)
	f.position("page", c.Page)
	if c.SortKey != "" {
		f.oneOf("sortKey", c.SortKey, "recommended", "price-asc", "price-desc", "rating-desc", "distance-asc")
	}
	f.timestamp("occurredAt", c.OccurredAt)
}

func (c *click) payload(g *guest.Guest, at time.Time, _ func(id.Prefix) string) event.Payload {
	return event.ClickRecorded{
		GuestSessionID: g.ID, Kind: c.Kind, TenantID: c.TenantID, PropertyID: c.PropertyID, SearchSessionID: c.SearchSessionID,
		Position: valueOrZero(c.Position), Page: valueOrZero(c.Page), SortKey: c.SortKey, OccurredAt: at,
	}
}

func valueOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func (c *click) viewedProperty() (property, tenant, source string) {
	return c.PropertyID, c.TenantID, viewSourceByKind[c.Kind]
}
