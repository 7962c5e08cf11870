package bots

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

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

// request is a line of an access log.
type request struct {
	Client string `json:"client"`
	Time   string `json:"t"`
	Line   string `json:"req"`
	UA     string `json:"ua"`
	Label  string `json:"label"`
	at     time.Time
}

// The cadence that a person does not keep up.
const (
	burst, burstWithin   = 12, 2 * time.Second
	steady, steadyWithin = 120, time.Minute
	cadenceWeight        = 0.3
)

// visitor is one user agent of one client: what a fingerprint would tell apart.
type visitor struct {
	kind            agent.Kind
	requests, pages []time.Time
	label           string
	fast, fastPages bool
}

// replay takes a log in the order of time and says who would have been challenged.
func replay(out io.Writer, file string) error {
	var all []request
	err := each(file, func(r request) (err error) {
		r.at, err = time.Parse("02/Jan/2006:15:04:05 -0700", r.Time)
		all = append(all, r)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	visitors := map[[2]string]*visitor{}
	for _, r := range all {
		key := [2]string{r.Client, r.UA}
		v := visitors[key]
		if v == nil {
			v = &visitor{kind: agent.Judge(r.UA).Kind, label: r.Label}
			visitors[key] = v
		}
		v.see(r)
	}
	return printReplay(out, filepath.Base(file), len(all), visitors)
}

func (v *visitor) see(r request) {
	v.requests = append(v.requests, r.at)
	v.fast = v.fast || tooFast(v.requests)
	if !asset(r.Line) {
		v.pages = append(v.pages, r.at)
		v.fastPages = v.fastPages || tooFast(v.pages)
	}
}

// tooFast says whether the newest of some requests completes a burst or keeps up a pace.
func tooFast(at []time.Time) bool {
	within := func(many int, long time.Duration) bool {
		return len(at) >= many && at[len(at)-1].Sub(at[len(at)-many]) < long
	}
	return within(burst, burstWithin) || within(steady, steadyWithin)
}

// asset says whether a request is for what a page is made of, which one visit asks for by the dozen.
func asset(line string) bool {
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
	type line struct{ visitors, named, driven, fast, fastPages, both int }
	labels := map[string]*line{}
	for _, v := range visitors {
		l := labels[v.label]
		if l == nil {
			l = &line{}
			labels[v.label] = l
		}
		score := v.kind.Weight()
		l.visitors++
		l.named += one(score >= suspect)
		l.driven += one(v.kind == agent.Automation)
		l.fast += one(v.fast)
		l.fastPages += one(v.fastPages)
		if v.fastPages {
			score += cadenceWeight
		}
		l.both += one(score >= suspect)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s: %d requests of %d clients, a client being an address with a user agent\n", file, requests, len(visitors))
	fmt.Fprintln(w, "label\tclients\tchallenged by agent\tautomation marks\ttoo fast\ttoo fast without assets\tchallenged")
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		l := labels[label]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", cmp.Or(label, "no label"), l.visitors, l.named, l.driven, l.fast, l.fastPages, l.both)
	}
	fmt.Fprintf(w, "Too fast is %d requests within %v or %d within %v. A browser asks for all that a page is made of at once, and logs\n"+
		"count in whole seconds; this service answers only what corresponds to pages, so it is the count without assets that\n"+
		"is added to the agent's score, %v. Cadence alone challenges nobody.\n",
		burst, burstWithin, steady, steadyWithin, cadenceWeight)
	return w.Flush()
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
