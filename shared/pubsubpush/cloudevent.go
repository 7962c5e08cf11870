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

// eventarcType is the type of the CloudEvent that Eventarc makes of a message; its data is the body of a push.
const eventarcType = "google.cloud.pubsub.topic.v1.messagePublished"

// decodeCloudEvent reads a CloudEvent into m.
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

func (m *Message) extension(names ...string) string {
	for _, name := range names {
		if value := m.Attributes[name]; value != "" {
			return value
		}
	}
	return ""
}

// parseCloudEvent lets the library read the event, from a copy: it takes the body away. What it says of a wrong one may repeat
// what was sent. It panics on some that no producer writes: a header "Ce-", or data_base64
// that is no text.
func parseCloudEvent(r *http.Request, body []byte) (_ *event.Event, err error) {
	defer func() {
		if recover() != nil {
			err = malformedf("no CloudEvent: the library cannot read it")
		}
	}()
	again := &http.Request{Method: r.Method, Header: r.Header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	e, err := cehttp.NewEventFromHTTPRequest(again)
	if err != nil {
		return nil, malformedf("no CloudEvent: %s", sanitize(err.Error()))
	}
	if err := e.Validate(); err != nil {
		return nil, malformedf("no CloudEvent: %s", sanitize(strings.ReplaceAll(err.Error(), "\n", " ")))
	}
	return e, nil
}
