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

// visitor is a user agent at a client address, the equivalent of a fingerprint.
type visitor struct {
	client                                           bot.Client
	class                                            agent.Classification
	label                                            string
	flaggedByAgent, fast, collided, flagged, blocked bool
	fastWithAssets                                   bool // the cadence signal if assets counted
}

// replay evaluates the requests of an access log in the order of their times and prints, by label,
// the number of clients to challenge. replay keeps the log in memory.
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
			v = &visitor{client: bot.Client{Address: r.Client, Fingerprint: r.UA}, class: agent.Classify(r.UA), label: r.Label}
			visitors[key] = v
		}
		v.observe(r, pages, everything)
	}
	return printReplay(out, filepath.Base(file), len(all), visitors)
}

// observe evaluates one request. The log has no cookies, so observe assumes returned cookies from
// browsers and from no other client: each page request of another client starts a session. Assets
// do not count as requests, because this service serves only the equivalent of pages.
func (v *visitor) observe(r logEntry, pages, everything *bot.InMemoryHistory) {
	page := !isAsset(r.Line)
	score := bot.Evaluate(bot.Evidence{Agent: v.class, History: pages.Observe(v.client, r.at, page)})
	if page && v.client.Session == "" {
		pages.SessionStarted(v.client, r.Time+r.Line, r.at)
		if v.class.Kind == agent.Human {
			v.client.Session = "its own"
		}
	}
	for _, s := range score.Signals {
		v.fast = v.fast || s.Kind == "cadence"
		v.collided = v.collided || s.Kind == "fingerprint-collision"
	}
	v.flaggedByAgent = v.flaggedByAgent || v.class.Kind.Weight() >= bot.SuspectThreshold
	v.flagged = v.flagged || score.Verdict != bot.Human
	v.blocked = v.blocked || score.Verdict == bot.Bot
	with := everything.Observe(bot.Client{Address: v.client.Address, Fingerprint: v.client.Fingerprint}, r.at, true)
	v.fastWithAssets = v.fastWithAssets || len(bot.Evaluate(bot.Evidence{History: with}).Signals) > 0
}

// isAsset reports whether a request line names a style sheet, script, image or font.
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
		l.driven += boolToInt(v.class.Kind == agent.Automation)
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
	fmt.Fprintln(w, "Times are those of the log, in whole seconds. Assets count in the column \"too fast with assets\" only, because this\n"+
		"service serves no assets. Browsers are assumed to return their cookie, other clients are not. Search engines count as\n"+
		"unverified.")
	return w.Flush()
}

// boolToInt returns 1 for true.
func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}
