package desk

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

// producers says who publishes a subject, and which member of the payload says when it happened.
var producers = map[string]struct{ service, when string }{
	"melmastoon.theme.published.v1":                    {"theme-config-service", "publishedAt"},
	"melmastoon.search_aggregation.listing.indexed.v1": {"search-aggregation-service", "indexedAt"},
	"melmastoon.tenant.suspended.v1":                   {"tenant-service", "suspendedAt"},
	"melmastoon.tenant.reinstated.v1":                  {"tenant-service", "reinstatedAt"},
}

// PlatformSubjects are the events of others that can be published, sorted.
func PlatformSubjects() []string { return slices.Sorted(maps.Keys(producers)) }

// envelopeMembers of the platform's envelope, in its order.
var envelopeMembers = []string{
	"eventId", "subject", "version", "occurredAt", "publishedAt", "producer", "producerInstance", "tenantId", "userId", "sessionId",
	"requestId", "traceId", "causationId", "correlationId", "schemaUri", "retentionClass", "samplingRate",
}

// EnvelopeMembers are those of the platform's envelope.
func EnvelopeMembers() []string { return slices.Clone(envelopeMembers) }

// PlatformEvent is an event of somebody else.
type PlatformEvent struct {
	Subject  string                    // one of Subjects
	Payload  jsontext.Value            // an object
	Envelope map[string]jsontext.Value // members that are not to be what the producer would write
	Raw      *string                   // the whole data instead, whatever it is; nil: as the producer would
}

// Publish puts an event on its topic as its producer would. Nothing in it is left to chance but the id, so that the
// same payload with the same id is the same event. eventID is "" when the data is raw.
func (d *Service) Publish(ctx context.Context, e PlatformEvent) (eventID, messageID string, err error) {
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
	if messageID, err = d.broker.Publish(ctx, e.Subject, data, attributes); err != nil {
		return "", "", err
	}
	d.tracker.recordPublished(messageID, e.Subject, eventID, now)
	return eventID, messageID, nil
}

// buildEnvelope makes the envelope of an event, by member.
func buildEnvelope(e PlatformEvent, now time.Time) (map[string]jsontext.Value, error) {
	var payload map[string]jsontext.Value
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("desk: payload of %s: %w", e.Subject, err)
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

// encodeEvent writes the event with the members of the envelope in their order.
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
		return nil, fmt.Errorf("desk: encode event: %w", err)
	}
	return compact, nil
}

func jsonString(s string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, s) // it is ours, and UTF-8
	return value
}

// stringValue is a JSON string's; "" when it is none.
func stringValue(v jsontext.Value) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
