package terraform

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

var alertsLine = regexp.MustCompile(`(?m)^Alerts: (.*)$`)

// alertOrSeverity matches an alert of a runbook's line, or the severity of the alerts before it.
var alertOrSeverity = regexp.MustCompile("`([^`]+)`|\\((page|ticket)s?\\)")

// runbookFindings returns the differences between the alerts and the runbooks in docs. The runbook
// of an alert names the alert in a line that begins with "Alerts:"; a severity follows one alert or
// several. Runbooks without such a line are procedures.
func runbookFindings(docs fs.FS, p *Plan) (found []string, _ error) {
	policies, err := decodeResources[struct {
		Labels        map[string]string `json:"user_labels"`
		Documentation []struct {
			Content string
			Links   []struct{ URL string }
		}
	}](p, "google_monitoring_alert_policy")
	if err != nil {
		return nil, err
	}
	var want, got []string
	for address, a := range policies {
		want = append(want, fmt.Sprintf("%s (%s) in %s.md", a.Labels["alert"], a.Labels["severity"], a.Labels["runbook"]))
		page := "docs/runbooks/" + a.Labels["runbook"] + ".md"
		if len(a.Documentation) != 1 || !strings.HasSuffix(a.Documentation[0].Content, page) {
			found = append(found, address+" does not say where its runbook is")
		} else if l := a.Documentation[0].Links; len(l) != 1 || !strings.HasSuffix(l[0].URL, page) {
			found = append(found, address+" does not lead to its runbook")
		}
	}
	index, err := fs.ReadFile(docs, "README.md")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(docs, "*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if name == "README.md" {
			continue
		}
		if !strings.Contains(string(index), "]("+name+")") {
			found = append(found, "README.md does not name "+name)
		}
		text, err := fs.ReadFile(docs, name)
		if err != nil {
			return nil, err
		}
		line := alertsLine.FindSubmatch(text)
		if line == nil {
			continue
		}
		var those []string
		for _, n := range alertOrSeverity.FindAllSubmatch(line[1], -1) {
			if len(n[1]) > 0 {
				those = append(those, string(n[1]))
				continue
			}
			for _, alert := range those {
				got = append(got, fmt.Sprintf("%s (%s) in %s", alert, n[2], name))
			}
			those = nil
		}
		if those != nil {
			found = append(found, fmt.Sprintf("%s does not say what %q are", name, those))
		}
		for _, section := range []string{"What the alert means", "Check", "Act"} {
			if !regexp.MustCompile(`(?m)^## .*` + section).Match(text) {
				found = append(found, fmt.Sprintf("%s has no part %q", name, section))
			}
		}
	}
	return append(found, diffNames("alerts in docs/runbooks", got, want)...), nil
}

func runbookDocs() fs.FS { return os.DirFS(filepath.Join(root, "docs", "runbooks")) }

func TestRunbooks_MatchAlerts(t *testing.T) {
	for _, environment := range []string{"production", "staging"} {
		found, err := runbookFindings(runbookDocs(), planOf(t, environment))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s: %s", environment, f)
		}
	}
}

func TestRunbooks_DetectMismatches(t *testing.T) {
	p := planOf(t, "production")
	docs := func() fstest.MapFS {
		all := fstest.MapFS{}
		names, err := fs.Glob(runbookDocs(), "*.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(runbookDocs(), name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = &fstest.MapFile{Data: text}
		}
		return all
	}
	removed, unnamed, alone := docs(), docs(), docs()
	delete(removed, "outbox.md")
	unnamed["README.md"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(unnamed["README.md"].Data), "](cache.md)", "](catch.md)"))}
	alone["tea.md"] = &fstest.MapFile{Data: []byte("# Tea\n\nAlerts: `no-tea` (page)\n\n## What the alert means\n\n## Check\n\n## Act\n")}
	for name, f := range map[string]struct {
		docs fs.FS
		plan *Plan
		said string
	}{
		"a runbook removed":            {removed, p, "outbox-late (page) in outbox.md"},
		"one that the index lacks":     {unnamed, p, "README.md does not name cache.md"},
		"one of an alert that is none": {alone, p, "no-tea (page) in tea.md"},
		"an alert of another name":     {docs(), withReplacedText(t, p, "google_monitoring_alert_policy", `"alert":"panics"`, `"alert":"defects"`), "defects (ticket) in panics.md"},
		"no word of it":                {docs(), withReplacedText(t, p, "google_monitoring_alert_policy", `Runbook: docs/runbooks/panics.md`, `Runbook: panic`), "does not say where its runbook is"},
		"a link to another":            {docs(), withReplacedText(t, p, "google_monitoring_alert_policy", `runbooks/panics.md"}`, `runbooks/bots.md"}`), "does not lead to its runbook"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := runbookFindings(f.docs, f.plan)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(found, "\n"), f.said) {
				t.Errorf("not found; what was: %q", found)
			}
		})
	}
}
