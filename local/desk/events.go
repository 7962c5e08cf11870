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
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
)

// producers says who publishes a subject, and which member of the payload says when it happened.
var producers = map[string]struct{ service, when string }{
	"melmastoon.theme.published.v1":                    {"theme-config-service", "publishedAt"},
	"melmastoon.search_aggregation.listing.indexed.v1": {"search-aggregation-service", "indexedAt"},
	"melmastoon.tenant.suspended.v1":                   {"tenant-service", "suspendedAt"},
	"melmastoon.tenant.reinstated.v1":                  {"tenant-service", "reinstatedAt"},
}

// Subjects are the events of others that can be published, sorted.
func Subjects() []string { return slices.Sorted(maps.Keys(producers)) }

// members of the platform's envelope, in its order.
var members = []string{
	"eventId", "subject", "version", "occurredAt", "publishedAt", "producer", "producerInstance", "tenantId", "userId", "sessionId",
	"requestId", "traceId", "causationId", "correlationId", "schemaUri", "retentionClass", "samplingRate",
}

// Members are those of the platform's envelope.
func Members() []string { return slices.Clone(members) }

// Event is an event of somebody else.
type Event struct {
	Subject  string                    // one of Subjects
	Payload  jsontext.Value            // an object
	Envelope map[string]jsontext.Value // members that are not to be what the producer would write
	Raw      *string                   // the whole data instead, whatever it is; nil: as the producer would
}

// Publish puts an event on its topic as its producer would. Nothing in it is left to chance but the id, so that the
// same payload with the same id is the same event. eventID is "" when the data is raw.
func (d *Desk) Publish(ctx context.Context, e Event) (eventID, messageID string, err error) {
	now := time.Now().UTC()
	var data []byte
	attributes := map[string]string{"subject": e.Subject}
	if e.Raw != nil {
		data = []byte(*e.Raw)
	} else {
		envelope, err := enclose(e, now)
		if err != nil {
			return "", "", err
		}
		if data, err = encode(envelope, e.Payload); err != nil {
			return "", "", err
		}
		eventID = text(envelope["eventId"])
		attributes["eventId"] = eventID
	}
	if messageID, err = d.broker.Publish(ctx, e.Subject, data, attributes); err != nil {
		return "", "", err
	}
	d.passages.published(messageID, e.Subject, eventID, now)
	return eventID, messageID, nil
}

// enclose makes the envelope of an event, by member.
func enclose(e Event, now time.Time) (map[string]jsontext.Value, error) {
	var payload map[string]jsontext.Value
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("desk: payload of %s: %w", e.Subject, err)
	}
	producer := producers[e.Subject]
	occurred := payload[producer.when]
	if _, err := time.Parse(time.RFC3339, text(occurred)); err != nil {
		occurred = quoted(instant.Text(now))
	}
	tenant := payload["tenantId"]
	if tenant == nil {
		tenant = jsontext.Value("null")
	}
	dot := strings.LastIndexByte(e.Subject, '.')
	name := strings.TrimPrefix(e.Subject[:dot], "melmastoon.")
	envelope := map[string]jsontext.Value{
		"eventId":          quoted(id.New(id.Event, now)),
		"subject":          quoted(e.Subject),
		"version":          jsontext.Value(e.Subject[dot+2:]),
		"occurredAt":       occurred,
		"publishedAt":      quoted(instant.Text(now)),
		"producer":         quoted(producer.service),
		"producerInstance": quoted(producer.service + "-local"),
		"tenantId":         tenant,
		"schemaUri": quoted("https://schemas.melmastoon.ghasi.io/" + strings.TrimSuffix(producer.service, "-service") + "/" +
			strings.NewReplacer(".", "-", "_", "-").Replace(name) + "/" + e.Subject[dot+1:] + ".json"),
		"retentionClass": quoted("operational"),
		"samplingRate":   jsontext.Value("1"),
	}
	maps.Copy(envelope, e.Envelope)
	for _, member := range members {
		if envelope[member] == nil {
			envelope[member] = jsontext.Value("null")
		}
	}
	return envelope, nil
}

// encode writes the event with the members of the envelope in their order.
func encode(envelope map[string]jsontext.Value, payload jsontext.Value) ([]byte, error) {
	var data bytes.Buffer
	data.WriteString(`{"envelope":{`)
	for i, member := range members {
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

func quoted(s string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, s) // it is ours, and UTF-8
	return value
}

// text is a JSON string's; "" when it is none.
func text(v jsontext.Value) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
