package event

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var release = flag.Bool("release", false, "record additive changes of the schemas as released")

// schemas/released is what consumers have read. A change of it is only made by -release, which
// refuses everything but growth.
func TestReleasedSchema_OnlyGrows(t *testing.T) {
	const dir = "schemas/released"
	now, was := embeddedSchemas(t), readSchemas(t, os.DirFS(dir))
	found := breakingChanges(was, now)
	for _, change := range found {
		t.Errorf("%s: readers of v1 would notice; publish a v2 beside it", change)
	}
	if reflect.DeepEqual(was, now) || len(found) > 0 {
		return
	}
	if !*release {
		t.Fatal("the schemas have grown; record it: go test ./event -run OnlyGrows -release")
	}
	for path := range now {
		data, err := schemaFiles.ReadFile("schemas/" + path)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// breakingChanges lists what would surprise a reader of the old files: everything but new files,
// new optional properties, new definitions and new prose.
func breakingChanges(was, now map[string]map[string]any) (found []string) {
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if now[path] == nil {
			found = append(found, path+" is gone")
			continue
		}
		found = append(found, compareSchemas(path, was[path], now[path])...)
	}
	return found
}

var annotationKeywords = []string{"title", "description", "$comment", "examples", "deprecated", "deprecatedSince"}

func compareSchemas(at string, was, now map[string]any) (found []string) {
	keywords := maps.Clone(was)
	maps.Copy(keywords, now)
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		here := at + "." + keyword
		switch before, after := was[keyword], now[keyword]; {
		case slices.Contains(annotationKeywords, keyword):
		case keyword == "properties" || keyword == "$defs":
			for _, name := range slices.Sorted(maps.Keys(asObject(before))) {
				sub, ok := asObject(after)[name]
				if !ok {
					found = append(found, here+"."+name+" is gone")
					continue
				}
				found = append(found, compareSchemas(here+"."+name, asObject(asObject(before)[name]), asObject(sub))...)
			}
		case asObject(before) != nil && asObject(after) != nil: // items, additionalProperties, propertyNames
			found = append(found, compareSchemas(here, asObject(before), asObject(after))...)
		case !reflect.DeepEqual(before, after): // "required" too: a new property is optional
			found = append(found, here+" has changed")
		}
	}
	return found
}

func TestReleasedSchema_DetectsBreakingChanges(t *testing.T) {
	const path = "search-executed/v1.json"
	payload := func(doc map[string]any) map[string]any { return asObject(asObject(doc["properties"])["payload"]) }
	fields := func(doc map[string]any) map[string]any { return asObject(payload(doc)["properties"]) }
	for name, c := range map[string]struct {
		change func(doc map[string]any)
		want   string // empty: additive
	}{
		"a property gone": {func(d map[string]any) { delete(fields(d), "sortKey") }, "properties.payload.properties.sortKey is gone"},
		"a property renamed": {func(d map[string]any) {
			fields(d)["sort"] = fields(d)["sortKey"]
			delete(fields(d), "sortKey")
		}, "properties.payload.properties.sortKey is gone"},
		"a type":             {func(d map[string]any) { asObject(fields(d)["fromCache"])["type"] = "string" }, "fromCache.type has changed"},
		"a type added":       {func(d map[string]any) { asObject(fields(d)["kind"])["type"] = "string" }, "kind.type has changed"},
		"a word more":        {func(d map[string]any) { asObject(fields(d)["kind"])["enum"] = []any{"list", "map", "globe"} }, "kind.enum has changed"},
		"a word fewer":       {func(d map[string]any) { asObject(fields(d)["kind"])["enum"] = []any{"list"} }, "kind.enum has changed"},
		"a limit":            {func(d map[string]any) { asObject(fields(d)["resultCount"])["maximum"] = 5.0 }, "resultCount.maximum has changed"},
		"a limit gone":       {func(d map[string]any) { delete(asObject(fields(d)["resultCount"]), "maximum") }, "resultCount.maximum has changed"},
		"another definition": {func(d map[string]any) { asObject(fields(d)["locale"])["$ref"] = "#/$defs/currency" }, "locale.$ref has changed"},
		"a list's items":     {func(d map[string]any) { asObject(asObject(fields(d)["filterKeys"])["items"])["pattern"] = "^.*$" }, "filterKeys.items.pattern has changed"},
		"no longer required": {func(d map[string]any) { payload(d)["required"] = payload(d)["required"].([]any)[1:] }, "payload.required has changed"},
		"required from now":  {func(d map[string]any) { payload(d)["required"] = append(payload(d)["required"].([]any), "page") }, "payload.required has changed"},
		"a new required one": {func(d map[string]any) {
			fields(d)["zoom"] = map[string]any{"type": "null"}
			payload(d)["required"] = append(payload(d)["required"].([]any), "zoom")
		}, "payload.required has changed"},
		"opened":            {func(d map[string]any) { delete(payload(d), "additionalProperties") }, "payload.additionalProperties has changed"},
		"a nested one gone": {func(d map[string]any) { delete(asObject(asObject(fields(d)["geo"])["properties"]), "city") }, "geo.properties.city is gone"},
		"another subject": {func(d map[string]any) {
			delete(asObject(asObject(asObject(d["properties"])["envelope"])["properties"])["subject"].(map[string]any), "const")
		}, "subject.const has changed"},
		"another address":    {func(d map[string]any) { d["$id"] = "https://example.com/" }, "$id has changed"},
		"nothing":            {func(map[string]any) {}, ""},
		"a new optional one": {func(d map[string]any) { fields(d)["zoom"] = map[string]any{"type": "integer"} }, ""},
		"a nested new one": {func(d map[string]any) {
			asObject(asObject(fields(d)["geo"])["properties"])["cell"] = map[string]any{"type": "null"}
		}, ""},
		"a new definition": {func(d map[string]any) { d["$defs"] = map[string]any{"zoom": map[string]any{"type": "null"}} }, ""},
		"prose": {func(d map[string]any) {
			d["description"] = "Better said."
			asObject(fields(d)["kind"])["$comment"] = "why"
		}, ""},
		"a property in prose": {func(d map[string]any) { fields(d)["description"] = map[string]any{"type": "null"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := embeddedSchemas(t), embeddedSchemas(t)
			c.change(now[path])
			found := breakingChanges(was, now)
			switch {
			case c.want == "" && len(found) > 0:
				t.Errorf("%q, want none", found)
			case c.want != "" && (len(found) != 1 || !strings.HasSuffix(found[0], c.want)):
				t.Errorf("%q, want %q", found, c.want)
			}
		})
	}
	t.Run("a schema gone", func(t *testing.T) {
		now := embeddedSchemas(t)
		delete(now, path)
		if found := breakingChanges(embeddedSchemas(t), now); len(found) != 1 {
			t.Errorf("%q", found)
		}
	})
	t.Run("a new schema", func(t *testing.T) {
		was := embeddedSchemas(t)
		delete(was, path)
		if found := breakingChanges(was, embeddedSchemas(t)); len(found) != 0 {
			t.Errorf("%q", found)
		}
	})
}
