package servertest

import (
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// RouteRequest is a valid and an invalid request of one public route.
type RouteRequest struct {
	Path, Body       string // Path is below web.BasePath; an empty Body means GET
	BadPath, BadBody string // both empty: the route rejects nothing
	Shared           bool   // the response is the same for every guest
}

// RouteRequests returns the requests of every operation of the public API document, by function.
// The property must exist for a valid request to succeed.
func RouteRequests(property, tenant string) map[string]RouteRequest {
	search := SearchBody("Kabul")
	stay := strings.SplitN(search, ",", 3)[2]
	box := strings.Replace(search, `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.3,"swLng":69,"neLat":34.7,"neLng":69.4}`, 1)
	from := time.Now().UTC().AddDate(0, 0, 5).Format(time.DateOnly)
	entry := `{"propertyId":"` + property + `","tenantId":"` + tenant + `","source":"list"}`
	now := timestamp.Format(time.Now())
	same := func(path, body, badBody string) RouteRequest {
		return RouteRequest{Path: path, Body: body, BadPath: path, BadBody: badBody}
	}
	return map[string]RouteRequest{
		"Search":            same("/search", search, `{}`),
		"SearchMap":         same("/search/map", box, search),
		"Facets":            {Path: "/facets?country=AF", BadPath: "/facets", Shared: true},
		"Detail":            {Path: "/hotels/" + property, BadPath: "/hotels/ppt_00000000000000000000000009", Shared: true},
		"Availability":      {Path: "/hotels/" + property + "/availability?from=" + from + "&to=" + from, BadPath: "/hotels/" + property + "/availability", Shared: true},
		"Handoff":           same("/handoff", `{"tenantId":"`+tenant+`","propertyId":"`+property+`",`+stay, `{}`),
		"WishlistList":      {Path: "/wishlist"},
		"WishlistAdd":       same("/wishlist", entry, `{}`),
		"WishlistRemove":    {Path: "/wishlist/" + property, BadPath: "/wishlist/ppt_1"},
		"Session":           {Path: "/session"},
		"SessionLocale":     same("/session/locale", `{"locale":"fr"}`, `{"locale":"xx"}`),
		"SessionCurrency":   same("/session/currency", `{"currency":"EUR"}`, `{"currency":"XXX"}`),
		"SessionConsent":    same("/session/consent", `{"consentMarketing":false}`, `{"consentMarketing":7}`),
		"SessionClear":      {Path: "/session/clear"},
		"SessionExport":     {Path: "/session/export"},
		"TelemetryClick":    same("/telemetry/click", `{"kind":"listing-card","tenantId":"`+tenant+`","propertyId":"`+property+`","position":1,"occurredAt":"`+now+`"}`, `{"kind":"nothing"}`),
		"TelemetryPageView": same("/telemetry/page-view", `{"path":"/search"}`, `{"path":7}`),
		"TelemetryFunnel":   same("/telemetry/funnel", `{"step":"map.opened"}`, `{"step":"nothing"}`),
	}
}
