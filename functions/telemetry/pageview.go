package telemetry

import (
	"net/http"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// pageView is what a client can know of page.viewed.v1 (docs/spec/events.md#page-viewed).
type pageView struct {
	common
	Path       string `json:"path"`
	TenantID   string `json:"tenantId"`
	PropertyID string `json:"propertyId"`
	Referer    string `json:"referer"` // of which no more than an https origin and a plain path is kept
	ViewedAt   string `json:"viewedAt"`
}

// PageView answers POST /telemetry/page-view.
func (d *Desk) PageView(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		pageView
		Events []pageView `json:"events"`
	}
	if err := web.DecodeBeacon(r, &in); err != nil {
		return err
	}
	list, err := reports(&in.pageView, in.Events)
	if err != nil {
		return err
	}
	return d.take(w, r, list)
}

func (v *pageView) subject() string { return event.PageViewed{}.Subject() }

func (v *pageView) about() *common { return &v.common }

func (v *pageView) when() string { return v.ViewedAt }

const maxReferer = 2_048 // bytes

func (v *pageView) check(f *faults) {
	path, ok := event.Path(v.Path)
	switch {
	case v.Path == "":
		f.add("path", "required", "Say the path of the page, such as /search.")
	case !ok:
		f.add("path", "malformed", "Must be the path of a page, such as /search.")
	}
	v.Path = path
	f.id("tenantId", id.Tenant, v.TenantID, false)
	f.id("propertyId", id.Property, v.PropertyID, false)
	if v.PropertyID == "" {
		v.PropertyID = hotelIn(path)
	}
	if len(v.Referer) > maxReferer {
		f.add("referer", "too-long", "Must be at most 2048 characters.")
	}
	f.instant("viewedAt", v.ViewedAt)
}

// hotelIn is the property whose page a path is: /hotels/ppt_…, perhaps with a language in front.
func hotelIn(path string) string {
	_, rest, ok := strings.Cut(path, "/hotels/")
	property, _, _ := strings.Cut(rest, "/")
	if !ok || !id.Valid(id.Property, property) {
		return ""
	}
	return property
}

func (v *pageView) tell(g *admission.Guest, at time.Time, ids func(id.Prefix) string) event.Payload {
	return event.PageViewed{
		ID: ids(id.PageView), GuestSessionID: g.ID, SearchSessionID: v.SearchSessionID, Path: v.Path, TenantID: v.TenantID,
		PropertyID: v.PropertyID, ViewedAt: at, Referer: event.Referer(v.Referer),
		UserAgentHash: g.Visit.AgentHash(), FingerprintHash: g.Fingerprint,
	}
}

func (v *pageView) viewed() (property, tenant, source string) {
	return v.PropertyID, v.TenantID, "detail-link"
}
