package telemetry

import (
	"net/http"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// pageView holds the members of page.viewed.v1 (docs/spec/events.md#page-viewed) that a client
// reports.
type pageView struct {
	commonFields
	Path       string `json:"path"`
	TenantID   string `json:"tenantId"`
	PropertyID string `json:"propertyId"`
	Referer    string `json:"referer"` // the event keeps at most an https origin and a plain path
	ViewedAt   string `json:"viewedAt"`
}

// PageView answers POST /telemetry/page-view: 1 to 50 page views, with the costs and failures of
// Handlers. The properties of viewed pages join the guest's list of viewed properties in Redis.
func (h *Handlers) PageView(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		pageView
		Events []pageView `json:"events"`
	}
	if err := web.DecodeBeacon(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	list, err := parseReports(&in.pageView, in.Events)
	if err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	return h.record(w, r, list)
}

func (v *pageView) subject() string { return event.PageViewed{}.Subject() }

func (v *pageView) fields() *commonFields { return &v.commonFields }

func (v *pageView) occurredAt() string { return v.ViewedAt }

const maxReferer = 2_048 // bytes

func (v *pageView) check(f *validator) {
	path, ok := event.SanitizePath(v.Path)
	switch {
	case v.Path == "":
		f.add("path", "required", "The path of the page is required, such as /search.")
	case !ok:
		f.add("path", "malformed", "Must be the path of a page, such as /search.")
	}
	v.Path = path
	f.id("tenantId", id.Tenant, v.TenantID, false)
	f.id("propertyId", id.Property, v.PropertyID, false)
	if v.PropertyID == "" {
		v.PropertyID = propertyFromPath(path)
	}
	if len(v.Referer) > maxReferer {
		f.add("referer", "too-long", "Must be at most 2048 characters.")
	}
	f.timestamp("viewedAt", v.ViewedAt)
}

// propertyFromPath returns the property id of a path such as /hotels/ppt_… or /fa/hotels/ppt_…, or
// "" for any other path.
func propertyFromPath(path string) string {
	_, rest, ok := strings.Cut(path, "/hotels/")
	property, _, _ := strings.Cut(rest, "/")
	if !ok || !id.Valid(id.Property, property) {
		return ""
	}
	return property
}

func (v *pageView) payload(g *guest.Guest, at time.Time, ids func(id.Prefix) string) event.Payload {
	return event.PageViewed{
		ID: ids(id.PageView), GuestSessionID: g.ID, SearchSessionID: v.SearchSessionID, Path: v.Path, TenantID: v.TenantID,
		PropertyID: v.PropertyID, ViewedAt: at, Referer: event.SanitizeReferer(v.Referer),
		UserAgentHash: g.Request.UserAgentHash(), FingerprintHash: g.Fingerprint,
	}
}

func (v *pageView) viewedProperty() (property, tenant, source string) {
	return v.PropertyID, v.TenantID, "detail-link"
}
