package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

var update = flag.Bool("update", false, "write the golden messages")

// A golden message is the contract: a diff is a change of what consumers read.
func TestEventMarshal_MatchesGoldenFile(t *testing.T) {
	for name := range samples {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(sample(name))
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, data, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), pretty.String()); diff != "" {
				t.Errorf("differs from %s (-golden +now), -update if the change is additive:\n%s", file, diff)
			}
		})
	}
}

func TestEventUnmarshal_GoldenFilesRoundTripAndValidate(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < len(samples) {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var e Event
			if err := json.Unmarshal(golden, &e); err != nil {
				t.Fatal(err)
			}
			if err := Validate(e); err != nil {
				t.Error(err)
			}
			if err := ValidateMessage(e.Subject, golden); err != nil {
				t.Error(err)
			}
			again, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			if err := json.Compact(&want, golden); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.String(), string(again)); diff != "" {
				t.Errorf("(-golden +again)\n%s", diff)
			}
		})
	}
}

func TestEventSubjects_EachHasASample(t *testing.T) {
	var sampled []string
	for name, p := range samples {
		if !strings.HasSuffix(name, ".few") {
			sampled = append(sampled, p.Subject())
		}
	}
	slices.Sort(sampled)
	if diff := cmp.Diff(Subjects(), sampled); diff != "" {
		t.Error(diff)
	}
	if len(Subjects()) != 12 {
		t.Errorf("%d subjects, want those of docs/spec/events.md#published-events", len(Subjects()))
	}
}

func TestEventNew_FillsEnvelope(t *testing.T) {
	e := New(Meta{SessionID: sampleSessionID, RequestID: "req_01KPWGB8XKFVZN6H3S0T5QYJ4N", Traceparent: "00-a-b-01", Now: sampleTime}, samples["bot_suspected.v1"])
	if !id.Valid(id.Event, e.ID) {
		t.Errorf("id %q", e.ID)
	}
	if minted := id.Time(e.ID); !minted.Equal(e.OccurredAt) {
		t.Errorf("id of %v, occurred %v", minted, e.OccurredAt)
	}
	want := Event{
		Subject: "melmastoon.bff.consumer.bot_suspected.v1", Version: 1,
		OccurredAt: time.Date(2026, 4, 23, 9, 14, 22, 41_000_000, time.UTC),
		Instance:   "bff-consumer-service", SessionID: sampleSessionID,
		RequestID: "req_01KPWGB8XKFVZN6H3S0T5QYJ4N", Traceparent: "00-a-b-01",
		SchemaURI:      "https://schemas.melmastoon.ghasi.io/bff-consumer/bot-suspected/v1.json",
		RetentionClass: Audit, SamplingRate: 1,
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(Event{}, "ID", "Payload")); diff != "" {
		t.Error(diff)
	}
	if a, b := New(Meta{Now: sampleTime}, e.Payload), New(Meta{Now: sampleTime}, e.Payload); a.ID >= b.ID {
		t.Errorf("ids of one instant are not in order: %s, %s", a.ID, b.ID)
	}
}

func TestEventAttributes_RepeatEnvelope(t *testing.T) {
	attributes := func(of string) (all map[string]string) {
		text, err := json.Marshal(sample(of).Attributes())
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := map[string]string{
		"eventId":        "evt_01KPWGB8XKFVZN6H3S0T5QYJ4P",
		"subject":        "melmastoon.bff.consumer.handoff.initiated.v1",
		"schemaUri":      "https://schemas.melmastoon.ghasi.io/bff-consumer/handoff-initiated/v1.json",
		"retentionClass": "audit",
		"traceparent":    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"orderingKey":    sampleSessionID,
	}
	if diff := cmp.Diff(want, attributes("handoff.initiated.v1")); diff != "" {
		t.Error(diff)
	}
	delete(want, "traceparent")
	delete(want, "orderingKey")
	if diff := cmp.Diff(want, attributes("handoff.initiated.v1.few")); diff != "" {
		t.Error(diff)
	}
}

func TestEventRetention_OnlyAuditSubjectsAreKeptForAYear(t *testing.T) {
	for _, subject := range Subjects() {
		want := Operational
		if subject == (HandoffInitiated{}).Subject() || subject == (BotSuspected{}).Subject() {
			want = Audit
		}
		if got := catalogue[subject].retention; got != want {
			t.Errorf("%s is %s, want %s", subject, got, want)
		}
	}
}

func TestEventMarshal_PublishedAtStaysValid(t *testing.T) {
	e := sample("wishlist.added.v1")
	e.PublishedAt = sampleTime.Add(17 * time.Millisecond)
	if err := Validate(e); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"publishedAt":"2026-04-23T09:14:22.058Z"`)) {
		t.Errorf("%s", data)
	}
}

func TestEventUnmarshal_IgnoresUnknownFields(t *testing.T) {
	data, err := json.Marshal(sample("locale.changed.v1"))
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(data, []byte(`"payload":{`), []byte(`"payload":{"reasonCode":7,`), 1)
	newer = bytes.Replace(newer, []byte(`"envelope":{`), []byte(`"envelope":{"region":"asia-south1",`), 1)
	var e Event
	if err := json.Unmarshal(newer, &e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample("locale.changed.v1"), e, cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
		t.Error(diff)
	}
}

func TestEventUnmarshal_RejectsInvalidMessages(t *testing.T) {
	for name, data := range map[string]string{
		"not JSON":          `{"envelope"`,
		"unknown subject":   `{"envelope":{"subject":"melmastoon.bff.consumer.search.executed.v2"},"payload":{}}`,
		"payload of a type": `{"envelope":{"subject":"melmastoon.bff.consumer.search.executed.v1"},"payload":[]}`,
		"no payload":        `{"envelope":{"subject":"melmastoon.bff.consumer.search.executed.v1"}}`,
	} {
		var e Event
		if err := e.UnmarshalJSON([]byte(data)); err == nil {
			t.Errorf("%s: read as %+v", name, e)
		}
	}
}

func TestEventMarshal_FailsForUnencodablePayload(t *testing.T) {
	e := New(Meta{Now: sampleTime}, FunnelStepRecorded{Metadata: map[string]any{"callback": func() {}}})
	if _, err := e.MarshalJSON(); err == nil {
		t.Error("written")
	}
	if err := Validate(e); err == nil {
		t.Error("valid")
	}
}
