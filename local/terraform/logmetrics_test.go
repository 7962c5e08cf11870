package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// logMetric is a log-based metric.
type logMetric struct {
	Name, Filter string
	Value        string            `json:"value_extractor"`
	Labels       map[string]string `json:"label_extractors"`
}

var (
	comparison     = regexp.MustCompile(`(jsonPayload|httpRequest)\.([A-Za-z.]+)(=~|!=|>=|<=|=|:|>|<)(\((?:"[^"]*"(?: OR )?)+\)|"[^"]*"|\*|[0-9]+)`)
	extraction     = regexp.MustCompile(`^EXTRACT\((jsonPayload|httpRequest)\.([A-Za-z.]+)\)$`)
	quotedValue    = regexp.MustCompile(`"([^"]*)"`)
	resourceFilter = regexp.MustCompile(`resource\.type="cloud_run_revision"|resource\.labels\.service_name=~"\^bff-consumer-"`)
	// logged by Cloud Run, not by the functions
	platformMessage = regexp.MustCompile(`textPayload:"no available instance"`)
	connectives     = regexp.MustCompile(`\bAND\b|\bOR\b|[()\s]`)
)

// logRecordsByFunction returns the log records that the source can write, by function name.
func logRecordsByFunction(root string, deployed []Function) (map[string]*logRecords, error) {
	all := map[string]*logRecords{}
	for _, f := range deployed {
		w, err := folderLogRecords(root, f.Folder)
		if err != nil {
			return nil, err
		}
		all[f.EntryPoint] = w
	}
	return all, nil
}

// unmatchedTerms returns the terms of a metric's filter that match no log record of a function. A
// metric that names functions must match a record of each; another metric must match a record of
// any function.
func unmatchedTerms(m logMetric, code map[string]*logRecords) (found []string) {
	terms := comparison.FindAllStringSubmatch(m.Filter, -1)
	if left := connectives.ReplaceAllString(comparison.ReplaceAllString(platformMessage.ReplaceAllString(resourceFilter.ReplaceAllString(m.Filter, ""), ""), ""), ""); left != "" {
		found = append(found, fmt.Sprintf("%s: %q is not understood", m.Name, left))
	}
	whose := slices.Collect(maps.Keys(code))
	byName := false
	for _, t := range terms {
		if t[2] != "function" {
			continue
		}
		whose, byName = nil, true
		for _, name := range quotedValue.FindAllStringSubmatch(t[4], -1) {
			if code[name[1]] == nil {
				found = append(found, fmt.Sprintf("%s: no function is called %s", m.Name, name[1]))
				continue
			}
			whose = append(whose, name[1])
		}
	}
	must := func(what string, ok func(w *logRecords) bool) {
		can := func(name string) bool { return ok(code[name]) }
		if len(whose) > 0 && (byName && !allMatch(whose, can) || !byName && !slices.ContainsFunc(whose, can)) {
			found = append(found, m.Name+": "+what)
		}
	}
	field := func(part, name string) {
		path := strings.TrimPrefix(part+"."+name, "jsonPayload.")
		top, below, nested := strings.Cut(path, ".")
		must("nobody writes the field "+path, func(w *logRecords) bool {
			return w.fields[path] || nested && w.fields[top] && w.tags[below]
		})
	}
	for _, t := range terms {
		field(t[1], t[2])
		values := quotedValue.FindAllStringSubmatch(t[4], -1)
		if t[2] == "status" {
			values = [][]string{{"", t[4]}}
		}
		for _, v := range values {
			must(fmt.Sprintf("the field %s is never %q", t[2], v[1]), func(w *logRecords) bool { return canHaveValue(w, t[2], t[3], v[1]) })
		}
	}
	for _, e := range append(slices.Collect(maps.Values(m.Labels)), m.Value) {
		if e == "" {
			continue
		}
		if got := extraction.FindStringSubmatch(e); got != nil {
			field(got[1], got[2])
		} else {
			found = append(found, fmt.Sprintf("%s: %q is not understood", m.Name, e))
		}
	}
	return found
}

func allMatch(names []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !ok(n) })
}

// canHaveValue reports whether a field can equal, begin with or contain a value.
func canHaveValue(w *logRecords, field, operator, value string) bool {
	begins, isBegin := strings.CutPrefix(value, "^")
	switch {
	case field == "function":
		return true // checked before
	case field == "status":
		n, _ := strconv.Atoi(value)
		return n == 200 || n == 201 || slices.ContainsFunc(problem.Catalogue(), func(k problem.Kind) bool { return k.Status == n })
	case field == "message" && operator == "=~":
		return isBegin && w.messages[begins+"…"]
	case field == "message":
		return w.messages[value]
	case field == "err" && operator == "=~":
		return isBegin && slices.ContainsFunc(problem.Catalogue(), func(k problem.Kind) bool { return k.Code == begins })
	}
	return operator != "=~" && w.texts[value]
}

var (
	userMetric  = regexp.MustCompile(`metric\.type="logging\.googleapis\.com/user/([^"]*)"`)
	metricLabel = regexp.MustCompile(`metric\.label\.([a-z_]+)=(?:"([^"]*)"|one_of\(([^)]*)\))`)
)

// invalidReferences returns the labels and metrics that a filter of an alert, an objective or a
// chart uses and that do not exist. It marks the metric as used.
func invalidReferences(where, filter string, metrics map[string]logMetric, used map[string]bool, code map[string]*logRecords) (found []string) {
	of := userMetric.FindStringSubmatch(filter)
	if of == nil {
		return nil
	}
	m, ok := metrics[of[1]]
	if !ok {
		return []string{fmt.Sprintf("%s: there is no metric %s", where, of[1])}
	}
	used[m.Name] = true
	for _, l := range metricLabel.FindAllStringSubmatch(filter, -1) {
		if m.Labels[l[1]] == "" {
			found = append(found, fmt.Sprintf("%s: %s has no label %s", where, m.Name, l[1]))
		}
		values := []string{l[2]}
		if l[2] == "" {
			values = strings.Split(strings.ReplaceAll(l[3], `"`, ""), ",")
		}
		for _, v := range values {
			known := code[v] != nil
			if l[1] != "function" {
				known = slices.ContainsFunc(slices.Collect(maps.Values(code)), func(w *logRecords) bool { return w.texts[v] })
			}
			if !known {
				found = append(found, fmt.Sprintf("%s: the label %s is never %q", where, l[1], v))
			}
		}
	}
	return found
}

// metricFilters returns all texts of a value that select a metric, also inside texts that are JSON.
func metricFilters(v any) (all []string) {
	switch v := v.(type) {
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			return metricFilters(inner)
		}
		if strings.Contains(v, "metric.type=") {
			return []string{v}
		}
	case []any:
		for _, e := range v {
			all = append(all, metricFilters(e)...)
		}
	case map[string]any:
		for _, e := range v {
			all = append(all, metricFilters(e)...)
		}
	}
	return all
}

// metricFindings returns the differences between the log-based metrics and the log records of the
// code.
func metricFindings(root string, p *Plan) (found []string, _ error) {
	deployed, err := p.Functions()
	if err != nil {
		return nil, err
	}
	code, err := logRecordsByFunction(root, deployed)
	if err != nil {
		return nil, err
	}
	planned, err := decodeResources[logMetric](p, "google_logging_metric")
	if err != nil {
		return nil, err
	}
	metrics, used := map[string]logMetric{}, map[string]bool{}
	for _, m := range planned {
		metrics[m.Name] = m
		found = append(found, unmatchedTerms(m, code)...)
	}
	for _, c := range p.Changes {
		if !strings.HasPrefix(c.Type, "google_monitoring_") {
			continue
		}
		var after any
		if err := json.Unmarshal(c.Change.After, &after); err != nil {
			return nil, err
		}
		for _, f := range metricFilters(after) {
			found = append(found, invalidReferences(c.Address, f, metrics, used, code)...)
		}
	}
	for name := range metrics {
		if !used[name] {
			found = append(found, "nobody looks at the metric "+name)
		}
	}
	return found, nil
}

func TestLogMetrics_MatchLoggedFields(t *testing.T) {
	for _, environment := range []string{"production", "staging"} {
		found, err := metricFindings(root, planOf(t, environment))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s: %s", environment, f)
		}
	}
}

func TestClientErrorAlert_CoversEveryPublicFunction(t *testing.T) {
	policies, err := decodeResources[struct {
		Conditions []struct {
			Threshold []struct{ Filter string } `json:"condition_threshold"`
		}
	}](planOf(t, "production"), "google_monitoring_alert_policy")
	if err != nil {
		t.Fatal(err)
	}
	busy := policies[`module.monitoring.google_monitoring_alert_policy.this["client-errors"]`].Conditions[0].Threshold[0].Filter
	for _, f := range web.Functions() {
		_, path, _ := strings.Cut(f.Pattern, " ")
		service := `"bff-consumer-` + kebab(f.Name) + `"`
		if strings.HasPrefix(path, web.BasePath+"/") != strings.Contains(busy, service) {
			t.Errorf("%s at %s: is it among what guests wait for? %s", f.Name, path, busy)
		}
	}
}

func kebab(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "$1-$2"))
}

// withReplacedText returns a plan in which a text of the resources of a type is replaced.
func withReplacedText(t *testing.T, p *Plan, typ, old, planted string) *Plan {
	t.Helper()
	other := *p
	other.Changes = slices.Clone(p.Changes)
	hits := 0
	for i, c := range other.Changes {
		if c.Type == typ && strings.Contains(string(c.Change.After), old) {
			other.Changes[i].Change.After = json.RawMessage(strings.ReplaceAll(string(c.Change.After), old, planted))
			hits++
		}
	}
	if hits == 0 {
		t.Fatalf("no %s has %q", typ, old)
	}
	return &other
}

func TestLogMetrics_DetectUnknownFieldsAndValues(t *testing.T) {
	for name, f := range map[string]struct{ typ, old, planted, said string }{
		"a field":              {"google_logging_metric", `jsonPayload.telemetryLost:*`, `jsonPayload.telemetryGone:*`, "nobody writes the field telemetryGone"},
		"a field of a report":  {"google_logging_metric", `jsonPayload.relay.depth)`, `jsonPayload.relay.deep)`, "nobody writes the field relay.deep"},
		"a label's field":      {"google_logging_metric", `EXTRACT(jsonPayload.limited)`, `EXTRACT(jsonPayload.policy)`, "nobody writes the field policy"},
		"another's field":      {"google_logging_metric", `jsonPayload.function=\"Relay\" AND httpRequest.status=200 AND`, `jsonPayload.function=\"Detail\" AND`, "nobody writes the field relay.depth"},
		"a field of a request": {"google_logging_metric", `httpRequest.status`, `httpRequest.code`, "nobody writes the field httpRequest.code"},
		"a message":            {"google_logging_metric", `outbox: the buffer cannot be drained`, `outbox: the buffer is full`, `the field message is never "outbox: the buffer is full"`},
		"how a message begins": {"google_logging_metric", `^cannot start `, `^cannot stop `, `the field message is never "^cannot stop "`},
		"a value":              {"google_logging_metric", `breaker-open`, `breaker-shut`, `is never "breaker-shut"`},
		"a code":               {"google_logging_metric", `^HANDOFF_REPLAYED`, `^HANDOFF_REPEATED`, `the field err is never "^HANDOFF_REPEATED"`},
		"a status":             {"google_logging_metric", `httpRequest.status=201`, `httpRequest.status=299`, `the field status is never "299"`},
		"a function":           {"google_logging_metric", `\"Consume\"`, `\"Consumer\"`, "no function is called Consumer"},
		"a filter in words":    {"google_logging_metric", `jsonPayload.stack:*`, `jsonPayload.stack:* NOT textPayload:x`, "is not understood"},
		"an alert's label":     {"google_monitoring_alert_policy", `metric.label.alarm=\"inbox-parked\"`, `metric.label.alarm=\"inbox-lost\"`, `the label alarm is never "inbox-lost"`},
		"a label that is none": {"google_monitoring_alert_policy", `metric.label.alarm=`, `metric.label.alert=`, "has no label alert"},
		"a job":                {"google_monitoring_alert_policy", `metric.label.function=\"SweepInbox\"`, `metric.label.function=\"SweepIn\"`, `the label function is never "SweepIn"`},
		"an objective's":       {"google_monitoring_slo", `\"HIT\"`, `\"HITS\"`, `the label state is never "HITS"`},
		"a chart's metric":     {"google_monitoring_dashboard", `bff_consumer_minted`, `bff_consumer_mints`, "there is no metric bff_consumer_mints"},
		"a metric for nobody":  {"google_monitoring_dashboard", `bff_consumer_swept`, `bff_consumer_panics`, "nobody looks at the metric bff_consumer_swept"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := metricFindings(root, withReplacedText(t, planOf(t, "production"), f.typ, f.old, f.planted))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, f.said) }) {
				t.Errorf("not found; what was: %q", found)
			}
		})
	}
}
