package specdocs

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// tables returns all generated tables of docs/spec.
func tables(t *testing.T) []table {
	t.Helper()
	all := []table{
		routes(t, "public", "api/consumer.openapi.yaml"),
		routes(t, "internal", "api/internal.openapi.yaml"),
		errorCodes(),
		published(t),
		consumed(t),
		rateLimits(),
	}
	return append(all, columns(t)...)
}

// routes lists the operations of an OpenAPI document, in the order of their paths.
func routes(t *testing.T, name, file string) table {
	t.Helper()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	doc, err := loader.LoadFromFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	tab := table{file: "routes.md", name: name, header: []string{"Route", "Function", "Folder", "Answer", "What", "Status codes"}}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		operations := doc.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			answer := "internal"
			for _, kind := range []string{"Shared", "Personal"} {
				if strings.HasPrefix(op.Description, kind) {
					answer = strings.ToLower(kind)
				}
			}
			codes := slices.Sorted(maps.Keys(op.Responses.Map()))
			tab.rows = append(tab.rows, []string{
				"`" + method + " " + path + "`", "`" + op.OperationID + "`", "`" + op.Tags[0] + "`", answer, op.Summary, strings.Join(codes, " "),
			})
		}
	}
	return tab
}

// errorCodes lists the error catalogue.
func errorCodes() table {
	tab := table{
		file: "routes.md", name: "errors", header: []string{"Code", "Status", "Retriable", "Title", "When"}, described: true,
	}
	for _, k := range problem.Catalogue() {
		retriable := ""
		if k.Retriable {
			retriable = "yes"
		}
		tab.rows = append(tab.rows, []string{"`" + k.Code + "`", strconv.Itoa(k.Status) + " " + http.StatusText(k.Status), retriable, k.Title})
	}
	return tab
}

// schema is the part of a JSON Schema that the tables need.
type schema struct {
	Const      any               `json:"const"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
}

// fields lists the members of a payload; optional ones have a question mark.
func (s schema) fields() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			name += "?"
		}
		names = append(names, "`"+name+"`")
	}
	return strings.Join(names, ", ")
}

// schemas returns the message schemas in the files of a pattern, by subject.
func schemas(t *testing.T, pattern string) map[string]schema {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	all := map[string]schema{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if subject, ok := s.Properties["envelope"].Properties["subject"].Const.(string); ok {
			all[subject] = s
		}
	}
	return all
}

// published lists the events that this service publishes.
func published(t *testing.T) table {
	tab := table{
		file: "events.md", name: "published", header: []string{"Subject", "Retention", "Rate", "Payload", "Published when"}, described: true,
	}
	const prefix = "melmastoon.bff.consumer."
	all := schemas(t, "shared/event/schemas/*/v*.json")
	for _, subject := range slices.Sorted(maps.Keys(all)) {
		short := strings.TrimPrefix(subject, prefix)
		rate := flags.Defaults().SamplingRate(short[:strings.LastIndexByte(short, '.')])
		retention, _ := all[subject].Properties["envelope"].Properties["retentionClass"].Const.(string)
		tab.rows = append(tab.rows, []string{
			"`" + short + "`", retention,
			strconv.FormatFloat(rate, 'g', -1, 64), all[subject].Properties["payload"].fields(),
		})
	}
	return tab
}

// consumed lists the platform events that this service processes.
func consumed(t *testing.T) table {
	tab := table{
		file: "events.md", name: "consumed", header: []string{"Subject", "Payload", "Effect"}, described: true,
	}
	all := schemas(t, "shared/inbox/schemas/melmastoon.*.json")
	for _, subject := range slices.Sorted(maps.Keys(all)) {
		tab.rows = append(tab.rows, []string{"`" + subject + "`", all[subject].Properties["payload"].fields()})
	}
	return tab
}

// rateLimits lists the default limits. The burst of a token bucket is a quarter of its limit per
// minute, rounded up.
func rateLimits() table {
	tab := table{file: "limits.md", name: "rate limits", header: []string{
		"Class", "Cookie", "Address", "Fingerprint", "Burst (cookie, address, fingerprint)",
	}}
	limits := flags.Defaults().Limits
	for _, class := range []struct {
		name string
		flags.Limit
	}{{"read", limits.Read}, {"handoff", limits.Handoff}, {"telemetry", limits.Telemetry}} {
		burst := func(perMinute int) string { return strconv.Itoa((perMinute + 3) / 4) }
		tab.rows = append(tab.rows, []string{
			"`" + class.name + "`", strconv.Itoa(class.Cookie), strconv.Itoa(class.IP), strconv.Itoa(class.Fingerprint),
			burst(class.Cookie) + ", " + burst(class.IP) + ", " + burst(class.Fingerprint),
		})
	}
	return tab
}

var (
	createTable = regexp.MustCompile(`(?ms)^CREATE TABLE bff_consumer\.(\w+) \(\n(.*?)^\);`)
	column      = regexp.MustCompile(`^    ([a-z_]+) +(\S.*)$`)
	comment     = regexp.MustCompile(`,?\s*(--.*)?$`)
)

// columns lists the columns of each table of schema.sql.
func columns(t *testing.T) (all []table) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "shared/migrations/schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
		tab := table{file: "data-model.md", name: m[1], header: []string{"Column", "Type", "Meaning"}, described: true}
		for line := range strings.Lines(m[2]) {
			if c := column.FindStringSubmatch(strings.TrimRight(line, "\n")); c != nil {
				definition := strings.TrimPrefix(comment.ReplaceAllString(c[2], ""), "bff_consumer.")
				tab.rows = append(tab.rows, []string{"`" + c[1] + "`", "`" + definition + "`"})
			}
		}
		all = append(all, tab)
	}
	if len(all) == 0 {
		t.Fatal("schema.sql has no tables")
	}
	return all
}
