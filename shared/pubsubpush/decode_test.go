package pubsubpush

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const eventJSON = `{"envelope":{},"payload":{"tenantId":"tnt_1"}}`

func newRequest(body string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "/internal/events/x", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func encodeBase64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

var pushJSON = `{
	"message": {
		"attributes": {"subject": "melmastoon.theme.published.v1", "n": "1"},
		"data": "` + encodeBase64(eventJSON) + `",
		"messageId": "2070443601311540", "message_id": "2070443601311540",
		"publishTime": "2026-11-20T12:00:00.123Z", "publish_time": "2026-11-20T12:00:00.123Z",
		"orderingKey": "tnt_1"
	},
	"subscription": "projects/p/subscriptions/s",
	"deliveryAttempt": 3
}`

func TestPushDecode_LibraryPanicIsMalformed(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*http.Request{
		"a header without a name": newRequest("{}", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "s", "Ce-Type", "t", "Ce-", "x"),
		"data_base64 of another type": newRequest(`{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":5}`,
			"Content-Type", "application/cloudevents+json"),
	} {
		m, err := Decode(r)
		if _, ok := errors.AsType[*MalformedError](err); !ok || len(m.Body) == 0 {
			t.Errorf("%s: got %+v, %v, want a MalformedError and the body", name, m, err)
		}
	}
}

func TestPushDecode_ReadsEveryEncoding(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC)
	binary := []string{
		"Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "e1", "Ce-Source", "//pubsub.googleapis.com/projects/p/topics/t",
		"Ce-Time", "2026-11-20T12:00:00.123Z",
	}
	for name, c := range map[string]struct {
		request *http.Request
		want    Message
	}{
		"a push": {newRequest(pushJSON, "Content-Type", "application/json"), Message{
			ID: "2070443601311540", Data: []byte(eventJSON), Attributes: map[string]string{"subject": "melmastoon.theme.published.v1", "n": "1"},
			OrderingKey: "tnt_1", Subscription: "projects/p/subscriptions/s", Attempt: 3, Published: at,
		}},
		"a push without a media type": {newRequest(`{"message":{"messageId":"1","data":"e30="}}`),
			Message{ID: "1", Data: []byte("{}"), Attributes: map[string]string{}, Attempt: 1}},
		"a push without data": {newRequest(`{"message":{"messageId":"1","attributes":{"a":"b"}},"subscription":"s"}`),
			Message{ID: "1", Attributes: map[string]string{"a": "b"}, Subscription: "s", Attempt: 1}},
		"a push with nulls": {newRequest(`{"message":{"messageId":"1","data":null,"attributes":null,"orderingKey":null},"deliveryAttempt":null}`),
			Message{ID: "1", Attributes: map[string]string{}, Attempt: 1}},
		"a push with unknown fields": {newRequest(`{"message":{"messageId":"1","data":"","new":{"a":[1]}},"newer":null,"deliveryAttempt":0}`),
			Message{ID: "1", Data: []byte{}, Attributes: map[string]string{}, Attempt: 1}},
		"a binary CloudEvent of a producer": {newRequest(eventJSON, append(binary, "Ce-Type", "melmastoon.theme.published.v1",
			"Ce-Partitionkey", "tnt_1", "Ce-Deliveryattempt", "2", "Ce-Subscription", "s")...), Message{
			ID: "e1", Data: []byte(eventJSON), Attributes: map[string]string{"partitionkey": "tnt_1", "deliveryattempt": "2", "subscription": "s"},
			OrderingKey: "tnt_1", Subscription: "s", Attempt: 2, Published: at,
		}},
		"a binary CloudEvent around a push": {newRequest(pushJSON, append(binary, "Ce-Type", eventarcType)...), Message{
			ID: "e1", Data: []byte(eventJSON), Attributes: map[string]string{"subject": "melmastoon.theme.published.v1", "n": "1"},
			OrderingKey: "tnt_1", Subscription: "projects/p/subscriptions/s", Attempt: 3, Published: at,
		}},
		"a binary CloudEvent without data": {newRequest("", append(binary, "Ce-Type", "x")...),
			Message{ID: "e1", Attributes: map[string]string{}, Attempt: 1, Published: at}},
		"a structured CloudEvent": {newRequest(`{"specversion":"1.0","id":"e2","type":"x","source":"s","time":"2026-11-20T12:00:00.123Z","orderingkey":"k",
			"datacontenttype":"application/json","data":`+eventJSON+`}`, "Content-Type", "application/cloudevents+json; charset=utf-8"), Message{
			ID: "e2", Data: []byte(eventJSON), Attributes: map[string]string{"orderingkey": "k"}, OrderingKey: "k", Attempt: 1, Published: at,
		}},
		"a structured CloudEvent in base64": {newRequest(`{"specversion":"1.0","id":"e2","type":"x","source":"s","data_base64":"`+encodeBase64(eventJSON)+`"}`,
			"Content-Type", "application/cloudevents+json"), Message{ID: "e2", Data: []byte(eventJSON), Attributes: map[string]string{}, Attempt: 1}},
		"a structured CloudEvent around a push": {newRequest(`{"specversion":"1.0","id":"e3","type":"`+eventarcType+`","source":"s","data":`+pushJSON+`}`,
			"Content-Type", "application/cloudevents+json"), Message{
			ID: "e3", Data: []byte(eventJSON), Attributes: map[string]string{"subject": "melmastoon.theme.published.v1", "n": "1"},
			OrderingKey: "tnt_1", Subscription: "projects/p/subscriptions/s", Attempt: 3, Published: at,
		}},
	} {
		got, err := Decode(c.request)
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Message{}, "Body")); diff != "" {
			t.Errorf("%s: message (-want +got):\n%s", name, diff)
		}
	}
}

func TestPushDecode_KeepsRawBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{pushJSON, "not JSON", ""} {
		if m, _ := Decode(newRequest(body)); string(m.Body) != body {
			t.Errorf("body: got %q, want %q", m.Body, body)
		}
	}
}

// malformedRequests are unreadable requests with the reasons of their errors.
var malformedRequests = map[string]struct {
	body    string
	headers []string
	reason  string
}{
	"an empty body":              {"", nil, "the body is empty"},
	"invalid JSON":               {"subject=x", nil, "the push is invalid JSON at byte 0"},
	"half a push":                {pushJSON[:80], nil, "the push is invalid JSON at byte 80"},
	"two values":                 {"{}{}", nil, "the push is invalid JSON at byte 2"},
	"a list":                     {"[]", nil, "the push is not an object of the right form"},
	"null":                       {"null", nil, "the push has no message"},
	"an object":                  {"{}", nil, "the push has no message"},
	"a bare event":               {eventJSON, nil, "the push has no message"},
	"a duplicate name":           {`{"message":{"messageId":"1"},"message":{}}`, nil, "the push is invalid JSON at byte 29"},
	"not UTF-8":                  {"{\"message\":{\"messageId\":\"\xff\"}}", nil, "the push is invalid JSON at byte 25"},
	"no id":                      {`{"message":{"data":"e30="}}`, nil, "the message has no id"},
	"an id of another type":      {`{"message":{"messageId":1}}`, nil, "the push is invalid at /message/messageId"},
	"data of another type":       {`{"message":{"messageId":"1","data":{}}}`, nil, "the push is invalid at /message/data"},
	"data of another base64":     {`{"message":{"messageId":"1","data":"_-=="}}`, nil, "data is not base64"},
	"data with bits to spare":    {`{"message":{"messageId":"1","data":"e31="}}`, nil, "data is not base64"},
	"nested attributes":          {`{"message":{"messageId":"1","attributes":{"a":{}}}}`, nil, "the push is invalid at /message/attributes/a"},
	"an invalid time":            {`{"message":{"messageId":"1","publishTime":"yesterday"}}`, nil, "publishTime is not a time"},
	"too many attempts":          {`{"message":{"messageId":"1"},"deliveryAttempt":1e99}`, nil, "the push is invalid at /deliveryAttempt"},
	"deep nesting":               {`{"message":{"new":` + strings.Repeat("[", 20000), nil, "the push is invalid JSON at byte 10016"},
	"an event without source":    {eventJSON, []string{"Ce-Id", "1", "Ce-Specversion", "1.0", "Ce-Type", "x"}, "not a CloudEvent: source: REQUIRED"},
	"an event of no version":     {eventJSON, []string{"Ce-Id", "1", "Ce-Type", "x", "Ce-Source", "s"}, "not a CloudEvent: "},
	"an event of version 9":      {eventJSON, []string{"Ce-Id", "1", "Ce-Type", "x", "Ce-Source", "s", "Ce-Specversion", "9"}, "not a CloudEvent: "},
	"an event without id":        {`{"specversion":"1.0","type":"x","source":"s"}`, []string{"Content-Type", "application/cloudevents+json"}, "not a CloudEvent: id: MUST"},
	"a structured half":          {`{"specversion":"1.0","id":`, []string{"Content-Type", "application/cloudevents+json"}, "not a CloudEvent: "},
	"a structured list":          {`[]`, []string{"Content-Type", "application/cloudevents+json"}, "not a CloudEvent: "},
	"another format":             {"<event/>", []string{"Content-Type", "application/cloudevents+xml"}, "not a CloudEvent: "},
	"a batch":                    {"[]", []string{"Content-Type", "application/cloudevents-batch+json"}, "a batch of CloudEvents"},
	"an event without a push":    {"", []string{"Ce-Id", "1", "Ce-Specversion", "1.0", "Ce-Type", eventarcType, "Ce-Source", "s"}, "the body is empty"},
	"an event with another body": {eventJSON, []string{"Ce-Id", "1", "Ce-Specversion", "1.0", "Ce-Type", eventarcType, "Ce-Source", "s"}, "the push has no message"},
	"a large body":               {`{"message":{"messageId":"1","data":"` + strings.Repeat("A", maxBody), nil, "the body is larger than 1048576 bytes"},
}

func TestPushDecode_ExplainsMalformedRequests(t *testing.T) {
	t.Parallel()
	for name, c := range malformedRequests {
		m, err := Decode(newRequest(c.body, c.headers...))
		wrong, ok := errors.AsType[*MalformedError](err)
		if !ok || !strings.HasPrefix(wrong.Reason, c.reason) || wrong.Error() != "pubsubpush: "+wrong.Reason {
			t.Errorf("%s: got %v, want %q", name, err, c.reason)
		}
		if want := c.body[:min(len(c.body), maxBody)]; string(m.Body) != want {
			t.Errorf("%s: got a body of %d bytes, want %d", name, len(m.Body), len(want))
		}
		if m.Attempt < 1 || m.Attributes == nil {
			t.Errorf("%s: got %+v, want an attempt of at least 1 and attributes", name, m)
		}
	}
}

func TestPushDecode_ReturnsReadableFieldsOfMalformedPush(t *testing.T) {
	t.Parallel()
	m, err := Decode(newRequest(`{"subscription":"s","deliveryAttempt":4,"message":{"messageId":"7","orderingKey":"k","data":"?"}}`))
	if err == nil || m.ID != "7" || m.Subscription != "s" || m.Attempt != 4 || m.OrderingKey != "k" || m.Data != nil {
		t.Errorf("got %+v, %v, want an error and the readable fields", m, err)
	}
}

func TestPushDecode_AcceptsBodyUpToLimit(t *testing.T) {
	t.Parallel()
	envelope := `{"message":{"messageId":"1","data":""}}`
	data := strings.Repeat("A", (maxBody-len(envelope))/4*4)
	body := strings.Replace(envelope, `"data":""`, `"data":"`+data+`"`, 1)
	body += strings.Repeat(" ", maxBody-len(body))
	m, err := Decode(newRequest(body))
	if err != nil || len(m.Data) != len(data)/4*3 {
		t.Errorf("got %d bytes, %v, want %d", len(m.Data), err, len(data)/4*3)
	}
	if _, err := Decode(newRequest(body + " ")); err == nil {
		t.Error("a byte over the limit: got no error")
	}
}

func TestPushDecode_TruncatedRequestIsNotMalformed(t *testing.T) {
	t.Parallel()
	r := newRequest("")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(pushJSON[:50]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	_, err := Decode(r)
	if _, wrong := errors.AsType[*MalformedError](err); wrong || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want io.ErrUnexpectedEOF and no MalformedError", err)
	}
}

func FuzzPushDecode_ReturnsMessageOrReason(f *testing.F) {
	f.Add([]byte(pushJSON), "application/json", "", "")
	f.Add([]byte(pushJSON), "application/json", "1", eventarcType)
	for _, c := range malformedRequests {
		if len(c.body) < 1<<10 {
			r := newRequest(c.body, c.headers...)
			f.Add([]byte(c.body), r.Header.Get("Content-Type"), r.Header.Get("Ce-Id"), r.Header.Get("Ce-Type"))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, media, id, kind string) {
		r := newRequest("", "Content-Type", media)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if id != "" {
			maps.Copy(r.Header, http.Header{"Ce-Id": {id}, "Ce-Type": {kind}, "Ce-Source": {"s"}, "Ce-Specversion": {"1.0"}})
		}
		m, err := Decode(r)
		if wrong, ok := errors.AsType[*MalformedError](err); err != nil && (!ok || wrong.Reason == "" || strings.ContainsAny(wrong.Reason, "\n\r")) {
			t.Fatalf("%q: %v", body, err)
		}
		if err == nil && m.ID == "" || m.Attempt < 1 || m.Attributes == nil || !bytes.Equal(m.Body, body) && len(body) < maxBody {
			t.Fatalf("%q: %+v", body, m)
		}
		_ = fmt.Sprint(m)
	})
}
