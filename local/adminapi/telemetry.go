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

// message is one event as its topic delivers it.
type message struct {
	ID          string            `json:"id"` // of the event; it is here twice when it was sent twice
	MessageID   string            `json:"messageId"`
	Subject     string            `json:"subject"`
	Attributes  map[string]string `json:"attributes"`
	OrderingKey string            `json:"orderingKey,omitzero"`
	Data        jsontext.Value    `json:"data"`         // {"envelope": …, "payload": …}; null when it is no JSON
	Raw         []byte            `json:"raw,omitzero"` // what is no JSON, in base64
	CreatedAt   time.Time         `json:"createdAt"`    // when the broker took it
}

const (
	maxMessages   = 1000
	subjectPrefix = "melmastoon.bff.consumer."
)

// telemetry answers the messages after a cursor, oldest first, at most 1,000, and the cursor to go on with. Everything
// that was published before the question is in the answer, or after its cursor.
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
		Missed   int       `json:"missed,omitzero"` // after the cursor that was asked for, forgotten since
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
