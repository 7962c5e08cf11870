package pubsub

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// producers maps each platform subject to the service that publishes it and to the payload member
// that holds the time of the event.
var producers = map[string]struct{ service, when string }{
	"melmastoon.theme.published.v1":                    {"theme-config-service", "publishedAt"},
	"melmastoon.search_aggregation.listing.indexed.v1": {"search-aggregation-service", "indexedAt"},
	"melmastoon.tenant.suspended.v1":                   {"tenant-service", "suspendedAt"},
	"melmastoon.tenant.reinstated.v1":                  {"tenant-service", "reinstatedAt"},
}

// PlatformSubjects returns a sorted copy of the subjects that Publish accepts.
func PlatformSubjects() []string { return slices.Sorted(maps.Keys(producers)) }

// envelopeMembers lists the members of the platform's envelope in the order of the wire format.
var envelopeMembers = []string{
	"eventId", "subject", "version", "occurredAt", "publishedAt", "producer", "producerInstance", "tenantId", "userId", "sessionId",
	"requestId", "traceId", "causationId", "correlationId", "schemaUri", "retentionClass", "samplingRate",
}

// EnvelopeMembers returns a copy of the member names of the platform's envelope, in wire order.
func EnvelopeMembers() []string { return slices.Clone(envelopeMembers) }

// PlatformEvent is an event of another platform service.
type PlatformEvent struct {
	Subject  string                    // an entry of PlatformSubjects
	Payload  jsontext.Value            // a JSON object; ignored if Raw is set
	Envelope map[string]jsontext.Value // replaces single envelope members; ignored if Raw is set
	// the whole message data, valid or not; nil builds envelope and payload
	Raw *string
}

// PlatformEvents publishes events of the platform's other services and tracks their delivery to the
// functions. It keeps the newest 1,000 events in memory. It is safe for concurrent use.
type PlatformEvents struct {
	broker  *Broker
	tracker *eventTracker
}

// NewPlatformEvents returns an empty PlatformEvents that publishes through b. It does no input or
// output. The caller passes the deliveries of its dispatcher to RecordDelivery.
func NewPlatformEvents(b *Broker) *PlatformEvents {
	return &PlatformEvents{broker: b, tracker: newEventTracker()}
}

// Publish puts an event on the topic of its subject, as the producing service does, in one call to
// the broker. The envelope is a function of the payload, the clock (publishedAt, and occurredAt if
// the payload has no valid time) and a new event id, so a repeat with the same Envelope["eventId"]
// is the same event. eventID is "" if e.Raw is set. Publish returns an error if the payload is not
// a JSON object, if a member is not valid JSON, or if the broker rejects the message or ctx ends.
// e.Subject must be an entry of PlatformSubjects.
func (p *PlatformEvents) Publish(ctx context.Context, e PlatformEvent) (eventID, messageID string, err error) {
	now := time.Now().UTC()
	var data []byte
	attributes := map[string]string{"subject": e.Subject}
	if e.Raw != nil {
		data = []byte(*e.Raw)
	} else {
		envelope, err := buildEnvelope(e, now)
		if err != nil {
			return "", "", err
		}
		if data, err = encodeEvent(envelope, e.Payload); err != nil {
			return "", "", err
		}
		eventID = stringValue(envelope["eventId"])
		attributes["eventId"] = eventID
	}
	if messageID, err = p.broker.Publish(ctx, e.Subject, data, attributes); err != nil {
		return "", "", err
	}
	p.tracker.recordPublished(messageID, e.Subject, eventID, now)
	return eventID, messageID, nil
}

// buildEnvelope returns the envelope of an event, by member. Members that neither the producer nor
// e.Envelope sets are null. It returns an error if the payload is not a JSON object.
func buildEnvelope(e PlatformEvent, now time.Time) (map[string]jsontext.Value, error) {
	var payload map[string]jsontext.Value
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("pubsub: payload of %s: %w", e.Subject, err)
	}
	producer := producers[e.Subject]
	occurred := payload[producer.when]
	if _, err := time.Parse(time.RFC3339, stringValue(occurred)); err != nil {
		occurred = jsonString(timestamp.Format(now))
	}
	tenant := payload["tenantId"]
	if tenant == nil {
		tenant = jsontext.Value("null")
	}
	dot := strings.LastIndexByte(e.Subject, '.')
	name := strings.TrimPrefix(e.Subject[:dot], "melmastoon.")
	envelope := map[string]jsontext.Value{
		"eventId":          jsonString(id.New(id.Event, now)),
		"subject":          jsonString(e.Subject),
		"version":          jsontext.Value(e.Subject[dot+2:]),
		"occurredAt":       occurred,
		"publishedAt":      jsonString(timestamp.Format(now)),
		"producer":         jsonString(producer.service),
		"producerInstance": jsonString(producer.service + "-local"),
		"tenantId":         tenant,
		"schemaUri": jsonString("https://schemas.melmastoon.ghasi.io/" + strings.TrimSuffix(producer.service, "-service") + "/" +
			strings.NewReplacer(".", "-", "_", "-").Replace(name) + "/" + e.Subject[dot+1:] + ".json"),
		"retentionClass": jsonString("operational"),
		"samplingRate":   jsontext.Value("1"),
	}
	maps.Copy(envelope, e.Envelope)
	for _, member := range envelopeMembers {
		if envelope[member] == nil {
			envelope[member] = jsontext.Value("null")
		}
	}
	return envelope, nil
}

// encodeEvent encodes an event as compact JSON, with the envelope members in wire order. It returns
// an error if a member or the payload is not valid JSON.
func encodeEvent(envelope map[string]jsontext.Value, payload jsontext.Value) ([]byte, error) {
	var data bytes.Buffer
	data.WriteString(`{"envelope":{`)
	for i, member := range envelopeMembers {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, "%q:%s", member, envelope[member])
	}
	fmt.Fprintf(&data, `},"payload":%s}`, payload)
	compact := jsontext.Value(data.Bytes())
	if err := compact.Compact(); err != nil {
		return nil, fmt.Errorf("pubsub: encode event: %w", err)
	}
	return compact, nil
}

// jsonString quotes s as a JSON string.
func jsonString(s string) jsontext.Value {
	// fails only for invalid UTF-8; all callers pass constants, ids and times
	value, _ := jsontext.AppendQuote(nil, s)
	return value
}

// stringValue returns the content of a JSON string, or "" for any other JSON.
func stringValue(v jsontext.Value) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
