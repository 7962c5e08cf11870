package event

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// readSchemas is every schema file by its path, search-executed/v1.json.
func readSchemas(t *testing.T, from fs.FS) map[string]map[string]any {
	t.Helper()
	paths, err := fs.Glob(from, "*/v*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, path := range paths {
		data, err := fs.ReadFile(from, path)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[path] = doc
	}
	return all
}

// embeddedSchemas is the schemas that are embedded.
func embeddedSchemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	return readSchemas(t, Schemas())
}

func TestEventSchemas_EachSubjectHasOneAtItsURI(t *testing.T) {
	all := embeddedSchemas(t)
	for path, doc := range all {
		if got := doc["$id"]; got != SchemaBase+filepath.ToSlash(path) {
			t.Errorf("%s has the address %s", path, got)
		}
		if got := doc["$schema"]; got != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s is of %s", path, got)
		}
	}
	for _, subject := range Subjects() {
		if all[schemaPath(subject)] == nil {
			t.Errorf("%s has no schema", subject)
		}
	}
	if len(all) != len(Subjects())+2 { // envelope, common
		t.Errorf("%d schemas for %d subjects", len(all), len(Subjects()))
	}
}

func TestEventSchemas_ErrorNamesFieldAndRule(t *testing.T) {
	for name, c := range map[string]struct {
		sample string
		change func(envelope, payload map[string]any)
		want   string
	}{
		"field missing":        {"search.executed.v1", func(_, p map[string]any) { delete(p, "queryHash") }, "payload: required"},
		"field unknown":        {"search.executed.v1", func(_, p map[string]any) { p["email"] = "a@b.af" }, "payload: additionalProperties"},
		"coordinates":          {"search.executed.v1", func(_, p map[string]any) { p["geo"].(map[string]any)["lat"] = 34.5 }, "payload.geo: additionalProperties"},
		"ages of a search":     {"search.executed.v1", func(_, p map[string]any) { p["occupancy"].(map[string]any)["childrenAges"] = []any{4} }, "payload.occupancy: additionalProperties"},
		"type":                 {"search.executed.v1", func(_, p map[string]any) { p["resultCount"] = "47" }, "payload.resultCount: type"},
		"date that is none":    {"search.executed.v1", func(_, p map[string]any) { p["dates"].(map[string]any)["checkIn"] = "2026-02-30" }, "payload.dates.checkIn: format"},
		"instant without ms":   {"locale.changed.v1", func(_, p map[string]any) { p["occurredAt"] = "2026-04-23T09:14:22Z" }, "payload.occurredAt: pattern"},
		"instant that is none": {"locale.changed.v1", func(_, p map[string]any) { p["occurredAt"] = "2026-04-23T25:14:22.000Z" }, "payload.occurredAt: format"},
		"reason":               {"session.ended.v1", func(_, p map[string]any) { p["reason"] = "bored" }, "payload.reason: enum"},
		"id of another kind":   {"wishlist.added.v1", func(_, p map[string]any) { p["tenantId"] = samplePropertyID }, "payload.tenantId: pattern"},
		"empty campaign":       {"session.started.v1", func(_, p map[string]any) { p["campaignAttribution"] = map[string]any{} }, "payload.campaignAttribution: minProperties"},
		"human":                {"bot_suspected.v1", func(_, p map[string]any) { p["verdict"] = "human" }, "payload.verdict: enum"},
		"a tenant's event":     {"wishlist.added.v1", func(e, _ map[string]any) { e["tenantId"] = sampleTenantID }, "envelope.tenantId: type"},
		"wrong retention":      {"wishlist.added.v1", func(e, _ map[string]any) { e["retentionClass"] = "audit" }, "envelope.retentionClass: const"},
		"rate zero":            {"wishlist.added.v1", func(e, _ map[string]any) { e["samplingRate"] = 0 }, "envelope.samplingRate: exclusiveMinimum"},
		"another's schema":     {"wishlist.added.v1", func(e, _ map[string]any) { e["schemaUri"] = SchemaURI((SearchExecuted{}).Subject()) }, "envelope.schemaUri: const"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := sampleDocument(t, c.sample)
			c.change(doc["envelope"].(map[string]any), doc["payload"].(map[string]any))
			data, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			err = ValidateMessage(samples[c.sample].Subject(), data)
			if err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestEventSchemas_RejectUnknownSubjectAndInvalidJSON(t *testing.T) {
	if err := ValidateMessage("melmastoon.bff.consumer.search.executed.v2", []byte(`{}`)); err == nil {
		t.Error("unknown subject")
	}
	if err := ValidateMessage((SearchExecuted{}).Subject(), []byte(`{"envelope"`)); err == nil {
		t.Error("not JSON")
	}
}

// sampleDocument is a sample as generic JSON.
func sampleDocument(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := json.Marshal(sample(name))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}
