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

// events lists the events of others that were on their way, oldest first, with what became of each.
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

// publishEvent puts an event of others on its topic.
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
		wrong.Add("raw", "conflict", "Stands for the whole data: there is neither payload nor envelope beside it.")
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
		return problem.New(problem.UpstreamUnavailable, "The broker does not take it at present.", err)
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		EventID   string `json:"eventId,omitzero"` // none when the data is raw
		MessageID string `json:"messageId"`
	}{eventID, messageID})
}

// applyTheme lets theme-config answer what an event of it tells, before anybody hears of it. What the others tell, the
// sandbox has no part in.
func (c *Handler) applyTheme(subject string, payload jsontext.Value) {
	var theme struct {
		TenantID string `json:"tenantId"`
		Version  string `json:"publishedVersion"`
	}
	if subject != "melmastoon.theme.published.v1" || json.Unmarshal(payload, &theme) != nil || theme.Version == "" {
		return // an event that is none is published all the same, to see what becomes of it
	}
	c.parts.Sandbox.PublishTheme(theme.TenantID, theme.Version)
}
