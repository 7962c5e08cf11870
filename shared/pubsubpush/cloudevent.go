package pubsubpush

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// eventarcType is the type of a CloudEvent made by Eventarc from a Pub/Sub message. The data of
// such an event is the body of a push.
const eventarcType = "google.cloud.pubsub.topic.v1.messagePublished"

// decodeCloudEvent decodes a CloudEvent into m. All extensions become attributes.
func (m *Message) decodeCloudEvent(r *http.Request) error {
	e, err := parseCloudEvent(r, m.Body)
	if err != nil {
		return err
	}
	m.ID, m.Published = e.ID(), e.Time().UTC()
	for name, value := range e.Extensions() {
		m.Attributes[name] = fmt.Sprint(value)
	}
	m.OrderingKey = m.extension("orderingkey", "partitionkey")
	m.Subscription = m.extension("subscription")
	if n, err := strconv.Atoi(m.extension("deliveryattempt")); err == nil {
		m.Attempt = max(n, 1)
	}
	if e.Type() == eventarcType {
		return m.unwrap(e.Data())
	}
	m.Data = e.Data()
	return nil
}

// extension returns the first non-empty extension of names.
func (m *Message) extension(names ...string) string {
	for _, name := range names {
		if value := m.Attributes[name]; value != "" {
			return value
		}
	}
	return ""
}

// parseCloudEvent decodes and validates a CloudEvent with the CloudEvents SDK. The SDK consumes the
// body of its request, so it gets a copy. Error texts of the SDK may repeat content of the request
// and are sanitized. The SDK panics for a header named "Ce-" and for data_base64 with another type
// than string; such a panic becomes a MalformedError.
func parseCloudEvent(r *http.Request, body []byte) (_ *event.Event, err error) {
	defer func() {
		if recover() != nil {
			err = malformedf("not a CloudEvent: the SDK cannot read it")
		}
	}()
	request := &http.Request{Method: r.Method, Header: r.Header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	e, err := cehttp.NewEventFromHTTPRequest(request)
	if err != nil {
		return nil, malformedf("not a CloudEvent: %s", sanitize(err.Error()))
	}
	if err := e.Validate(); err != nil {
		return nil, malformedf("not a CloudEvent: %s", sanitize(strings.ReplaceAll(err.Error(), "\n", " ")))
	}
	return e, nil
}
