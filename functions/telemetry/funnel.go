package telemetry

import (
	"math"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// funnelStep holds the client's members of funnel.step_recorded.v1
// (docs/spec/events.md#funnel-step-recorded).
type funnelStep struct {
	commonFields
	Step       string         `json:"step"`
	TenantID   string         `json:"tenantId"`
	PropertyID string         `json:"propertyId"`
	Metadata   map[string]any `json:"metadata"`
	OccurredAt string         `json:"occurredAt"`
}

const (
	maxMetadataMembers = 8
	maxMetadataNumber  = 1_000_000
)

// Funnel answers POST /telemetry/funnel: 1 to 50 steps of the booking funnel, with the costs and
// failures of Handlers. Funnel changes no list of viewed properties.
func (h *Handlers) Funnel(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		funnelStep
		Events []funnelStep `json:"events"`
	}
	if err := web.DecodeBeacon(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	list, err := parseReports(&in.funnelStep, in.Events)
	if err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	return h.record(w, r, list)
}

func (s *funnelStep) subject() string { return event.FunnelStepRecorded{}.Subject() }

func (s *funnelStep) fields() *commonFields { return &s.commonFields }

func (s *funnelStep) occurredAt() string { return s.OccurredAt }

func (s *funnelStep) check(f *validator) {
	f.oneOf("step", s.Step, "session.started", "search.executed", "list.scrolled-50pct", "list.scrolled-90pct", "map.opened",
		"detail.viewed", "wishlist.added", "handoff.initiated")
	f.id("tenantId", id.Tenant, s.TenantID, false)
	f.id("propertyId", id.Property, s.PropertyID, false)
	f.timestamp("occurredAt", s.OccurredAt)
	if len(s.Metadata) > maxMetadataMembers {
		f.add("metadata", "too-many", "Must have at most 8 members.")
		return
	}
	for name, value := range s.Metadata {
		accepted, ok := metadataValue(value)
		if !ok || !event.IsMetadataName(name) { // the fault omits the name, which may be personal data
			f.add("metadata", "malformed", "Members are small whole numbers, booleans and lower-case words, under plain names.")
			return
		}
		s.Metadata[name] = accepted
	}
}

// metadataValue accepts booleans, whole numbers from 0 to 1,000,000, and words of
// event.IsMetadataWord. No sentence, address or telephone number has such a form.
func metadataValue(value any) (any, bool) {
	switch v := value.(type) {
	case bool:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && v >= 0 && v <= maxMetadataNumber
	case string:
		return v, event.IsMetadataWord(v)
	default:
		return nil, false
	}
}

func (s *funnelStep) payload(g *guest.Guest, at time.Time, ids func(id.Prefix) string) event.Payload {
	return event.FunnelStepRecorded{
		ID: ids(id.Funnel), GuestSessionID: g.ID, Step: s.Step, OccurredAt: at, TenantID: s.TenantID, PropertyID: s.PropertyID,
		SearchSessionID: s.SearchSessionID, Metadata: s.Metadata,
	}
}

func (s *funnelStep) viewedProperty() (property, tenant, source string) { return "", "", "" }
