package event

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

var publishTime = time.Date(2026, 4, 23, 9, 14, 23, 58_600_000, time.UTC)

func TestWithPublishedAt_SetsTimeOnly(t *testing.T) {
	for name := range samples {
		e := sample(name)
		stored, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := WithPublishedAt(stored, e.ID, publishTime)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e.PublishedAt = publishTime.Truncate(time.Millisecond)
		want, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		if err := ValidateMessage(e.Subject, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithPublishedAt_KeepsUnknownFields(t *testing.T) {
	got, err := WithPublishedAt([]byte(`{"payload":{"b":1.50,"a":"<\u0026>"},"later":[1],"envelope":{"zone":"x","publishedAt":"old","subject":"s","eventId":"e"}}`), "e", publishTime)
	const want = `{"envelope":{"eventId":"e","subject":"s","publishedAt":"2026-04-23T09:14:23.058Z","zone":"x"},"payload":{"b":1.50,"a":"<\u0026>"},"later":[1]}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}

func TestWithPublishedAt_RejectsInvalidMessages(t *testing.T) {
	for message, want := range map[string]string{
		``: "is not a JSON object", `nonsense`: "is not a JSON object", `null`: "is not a JSON object", `7`: "is not a JSON object", `["canary"]`: "is not a JSON object",
		`{"payload":{}}`: "no envelope", `{"envelope":null,"payload":{}}`: "no envelope", `{"envelope":"canary","payload":{}}`: "no envelope",
		`{"envelope":{"eventId":"e"}}`: "no payload", `{"envelope":{"eventId":"e"},"payload":"canary"}`: "no payload",
		`{"envelope":{},"payload":{}}`: "another event", `{"envelope":{"eventId":"canary"},"payload":{}}`: "another event",
		`{"envelope":{"eventId":7},"payload":{}}`: "another event",
	} {
		_, err := WithPublishedAt([]byte(message), "e", publishTime)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %s", message, err, want)
		}
	}
}

func FuzzWithPublishedAt_IsIdempotent(f *testing.F) {
	f.Add([]byte(`{"envelope":{"eventId":"e"},"payload":{}}`))
	f.Add([]byte(`{"envelope":{"eventId":"e","eventId":"f"},"payload":{"\ud800":1}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		out, err := WithPublishedAt(message, "e", publishTime)
		if err != nil {
			return
		}
		// What goes out is a message again, and the same one.
		again, err := WithPublishedAt(out, "e", publishTime)
		if err != nil || !bytes.Equal(out, again) {
			t.Errorf("%s then %s %v", out, again, err)
		}
	})
}
