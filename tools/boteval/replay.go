package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

// logEntry is a line of an access log.
type logEntry struct {
	Client string `json:"client"`
	Time   string `json:"t"`
	Line   string `json:"req"`
	UA     string `json:"ua"`
	Label  string `json:"label"`
	at     time.Time
}

// visitor is one user agent of one client: what a fingerprint would tell apart.
type visitor struct {
	client                                           bot.Client
	judgement                                        agent.Classification
	label                                            string
	flaggedByAgent, fast, collided, flagged, blocked bool
	fastWithAssets                                   bool // fast if its assets counted
}

// replay takes a log in the order of time and says who would have been challenged.
func replay(out io.Writer, file string) error {
	var all []logEntry
	err := forEachLine(file, func(r logEntry) (err error) {
		r.at, err = time.Parse("02/Jan/2006:15:04:05 -0700", r.Time)
		all = append(all, r)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b logEntry) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	pages, everything := bot.NewInMemoryHistory(), bot.NewInMemoryHistory()
	visitors := map[[2]string]*visitor{}
	for _, r := range all {
		key := [2]string{r.Client, r.UA}
		v := visitors[key]
		if v == nil {
			v = &visitor{client: bot.Client{Address: r.Client, Fingerprint: r.UA}, judgement: agent.Classify(r.UA), label: r.Label}
			visitors[key] = v
		}
		v.observe(r, pages, everything)
	}
	return printReplay(out, filepath.Base(file), len(all), visitors)
}

// observe is one request. Whose agent is a browser's gives its cookie back, which the log does not tell; nobody else does, so
// each of the others' pages begins a session. This service answers only what corresponds to pages.
func (v *visitor) observe(r logEntry, pages, everything *bot.InMemoryHistory) {
	page := !isAsset(r.Line)
	score := bot.Evaluate(bot.Evidence{Agent: v.judgement, History: pages.Observe(v.client, r.at, page)})
	if page && v.client.Session == "" {
		pages.SessionStarted(v.client, r.Time+r.Line, r.at)
		if v.judgement.Kind == agent.Human {
			v.client.Session = "its own"
		}
	}
	for _, s := range score.Signals {
		v.fast = v.fast || s.Kind == "cadence"
		v.collided = v.collided || s.Kind == "fingerprint-collision"
	}
	v.flaggedByAgent = v.flaggedByAgent || v.judgement.Kind.Weight() >= bot.SuspectThreshold
	v.flagged = v.flagged || score.Verdict != bot.Human
	v.blocked = v.blocked || score.Verdict == bot.Bot
	with := everything.Observe(bot.Client{Address: v.client.Address, Fingerprint: v.client.Fingerprint}, r.at, true)
	v.fastWithAssets = v.fastWithAssets || len(bot.Evaluate(bot.Evidence{History: with}).Signals) > 0
}

// isAsset says whether a request is for what a page is made of, which one visit asks for by the dozen.
func isAsset(line string) bool {
	_, target, _ := strings.Cut(line, " ")
	target, _, _ = strings.Cut(target, " ")
	target, _, _ = strings.Cut(target, "?")
	switch strings.ToLower(path.Ext(target)) {
	case ".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".ico", ".svg", ".woff", ".ttf", ".eot":
		return true
	}
	return false
}

func printReplay(out io.Writer, file string, requests int, visitors map[[2]string]*visitor) error {
	type line struct{ visitors, named, driven, assetsToo, fast, collided, flagged, blocked int }
	labels := map[string]*line{}
	for _, v := range visitors {
		l := labels[v.label]
		if l == nil {
			l = &line{}
			labels[v.label] = l
		}
		l.visitors++
		l.named += boolToInt(v.flaggedByAgent)
		l.driven += boolToInt(v.judgement.Kind == agent.Automation)
		l.assetsToo += boolToInt(v.fastWithAssets)
		l.fast += boolToInt(v.fast)
		l.collided += boolToInt(v.collided)
		l.flagged += boolToInt(v.flagged)
		l.blocked += boolToInt(v.blocked)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s: %d requests of %d clients, a client being an address with a user agent\n", file, requests, len(visitors))
	fmt.Fprintln(w, "label\tclients\tby agent alone\tautomation marks\ttoo fast with assets\ttoo fast\tmany sessions\tchallenged\tof them blocked")
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		l := labels[label]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", cmp.Or(label, "no label"), l.visitors, l.named, l.driven, l.assetsToo, l.fast,
			l.collided, l.flagged, l.blocked)
	}
	fmt.Fprintln(w, "Cadence and sessions are those of the time that the log tells, in whole seconds. A browser asks at once for all that a\n"+
		"page is made of; this service answers only what corresponds to pages, so assets are not counted, but in one column.\n"+
		"Browsers are taken to give their cookie back, others not. Search engines are as good as unverified here.")
	return w.Flush()
}

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}
