package relay

import (
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	// maxMessageSize leaves 100 kB of the 10 MB limit of a Pub/Sub request for framing.
	maxMessageSize = 10_000_000 - 100_000
	// maxRequestSize limits the rows of a request, in bytes; a larger row is sent alone. An
	// emulator of Pub/Sub may accept 4 MiB only, the default of gRPC.
	maxRequestSize = 3 << 20
)

// encodeMessage returns the Pub/Sub message of a row: the payload with publishedAt set to now, the
// headers as attributes, and the session as ordering key. encodeMessage fails for a payload or
// headers of another form and for a message over 9.9 MB. The error repeats nothing of the row.
func encodeMessage(row outbox.Pending, now time.Time) (*pubsubpb.PubsubMessage, error) {
	data, err := event.WithPublishedAt([]byte(row.Payload), row.ID, now)
	if err != nil {
		return nil, err
	}
	var attributes map[string]string
	if json.Unmarshal([]byte(row.Headers), &attributes) != nil {
		return nil, errors.New("relay: the headers are not an object of strings")
	}
	delete(attributes, "orderingKey")
	if size := len(data) + len(row.Headers); size > maxMessageSize {
		return nil, fmt.Errorf("relay: the message has %d bytes, more than %d", size, maxMessageSize)
	}
	return &pubsubpb.PubsubMessage{Data: data, Attributes: attributes, OrderingKey: row.Session}, nil
}
