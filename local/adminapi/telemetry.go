package adminapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// message is a published event as its topic delivers it.
type message struct {
	ID          string            `json:"id"` // of the event; repeated if the relay published the event twice
	MessageID   string            `json:"messageId"`
	Subject     string            `json:"subject"`
	Attributes  map[string]string `json:"attributes"`
	OrderingKey string            `json:"orderingKey,omitzero"`
	// {"envelope": …, "payload": …}; null for data that is not JSON
	Data      jsontext.Value `json:"data"`
	Raw       []byte         `json:"raw,omitzero"` // data that is not JSON, in base64
	CreatedAt time.Time      `json:"createdAt"`    // publish time of the broker
}

const (
	maxMessages   = 1000
	subjectPrefix = "melmastoon.bff.consumer."
)

// telemetry responds with at most 1,000 messages after a cursor, oldest first, and the cursor of
// the next page. A message published before the request is on this page or on a later page. The
// route responds 503 if the broker does not answer within 2 s.
func (c *Handler) telemetry(w http.ResponseWriter, r *http.Request) error {
	since := 0
	if text := r.URL.Query().Get("since"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return problem.Invalid(problem.FieldError{Field: "since", Code: "cursor", Detail: "Must be a cursor of an earlier answer."})
		}
		since = n
	}
	subject := r.URL.Query().Get("subject")
	if known := event.Subjects(); subject != "" && !slices.Contains(known, subject) && !slices.Contains(known, subjectPrefix+subject) {
		return problem.Invalid(problem.FieldError{Field: "subject", Code: "unsupported", Detail: "The subjects are " + strings.Join(known, ", ") + "; " + subjectPrefix + " may be left out."})
	}
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if err := c.parts.Telemetry.CatchUp(ctx); err != nil {
		return problem.New(problem.UpstreamUnavailable, "The telemetry topics cannot be read at present.", err)
	}
	found := []message{}
	at, missed := c.parts.Telemetry.Read(since, func(m pubsub.TelemetryMessage) bool {
		if len(found) == maxMessages {
			return false
		}
		if subject == "" || m.Subject == subject || m.Subject == subjectPrefix+subject {
			found = append(found, newMessage(m))
		}
		return true
	})
	return web.WriteJSON(w, http.StatusOK, struct {
		Messages []message `json:"messages"`
		Cursor   string    `json:"cursor"`
		// messages after the requested cursor that the log has dropped
		Missed int `json:"missed,omitzero"`
	}{found, strconv.Itoa(at), missed})
}

func newMessage(m pubsub.TelemetryMessage) message {
	data := jsontext.Value(m.Message.Data)
	all := message{
		ID: m.Message.Attributes["eventId"], MessageID: m.Message.MessageId, Subject: m.Subject, Attributes: m.Message.Attributes,
		OrderingKey: m.Message.OrderingKey, Data: data, CreatedAt: m.Message.PublishTime.AsTime().Truncate(time.Millisecond),
	}
	if !data.IsValid() {
		all.Data, all.Raw = nil, m.Message.Data
	}
	return all
}
