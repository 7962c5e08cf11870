package adminapi

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// events lists the tracked platform events with the state of their delivery, oldest first. The
// query parameters eventId and subject filter the list.
func (c *Handler) events(w http.ResponseWriter, r *http.Request) error {
	found := []pubsub.TrackedEvent{}
	q := r.URL.Query()
	for _, e := range c.parts.Events.List() {
		if (!q.Has("eventId") || e.EventID == q.Get("eventId")) && (!q.Has("subject") || e.Subject == q.Get("subject")) {
			found = append(found, e)
		}
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Events []pubsub.TrackedEvent `json:"events"`
	}{found})
}

// publishEvent publishes a platform event. It responds 422 for a wrong body and 503 if the broker
// does not accept the event within 2 s.
func (c *Handler) publishEvent(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Subject  string                    `json:"subject"`
		Payload  jsontext.Value            `json:"payload"`
		Envelope map[string]jsontext.Value `json:"envelope"`
		Raw      *string                   `json:"raw"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	var wrong problem.FieldErrors
	if !slices.Contains(pubsub.PlatformSubjects(), in.Subject) {
		wrong.Add("subject", "unsupported", "The subjects are "+strings.Join(pubsub.PlatformSubjects(), ", ")+".")
	}
	switch {
	case in.Raw == nil && in.Payload.Kind() != jsontext.KindBeginObject:
		wrong.Add("payload", "type", "Must be a JSON object.")
	case in.Raw != nil && (in.Payload != nil || in.Envelope != nil):
		wrong.Add("raw", "conflict", "Replaces the whole data, so payload and envelope must be absent.")
	}
	for _, member := range slices.Sorted(maps.Keys(in.Envelope)) {
		if !slices.Contains(pubsub.EnvelopeMembers(), member) {
			wrong.Add("envelope."+member, problem.UnknownField, "The members are "+strings.Join(pubsub.EnvelopeMembers(), ", ")+".")
		}
	}
	if wrong != nil {
		return problem.Invalid(wrong...)
	}
	c.applyTheme(in.Subject, in.Payload)
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	eventID, messageID, err := c.parts.Events.Publish(ctx, pubsub.PlatformEvent{Subject: in.Subject, Payload: in.Payload, Envelope: in.Envelope, Raw: in.Raw})
	if err != nil {
		return problem.New(problem.UpstreamUnavailable, "The broker does not accept the event at present.", err)
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		EventID   string `json:"eventId,omitzero"` // absent for raw data
		MessageID string `json:"messageId"`
	}{eventID, messageID})
}

// applyTheme changes the theme in the sandbox before the event about it is published, so a function
// that receives the event reads the new theme. Events of other subjects change nothing in the
// sandbox.
func (c *Handler) applyTheme(subject string, payload jsontext.Value) {
	var theme struct {
		TenantID string `json:"tenantId"`
		Version  string `json:"publishedVersion"`
	}
	if subject != "melmastoon.theme.published.v1" || json.Unmarshal(payload, &theme) != nil || theme.Version == "" {
		return // publishEvent publishes an invalid theme event as well, to test the function's response
	}
	c.parts.Sandbox.PublishTheme(theme.TenantID, theme.Version)
}
