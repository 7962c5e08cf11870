package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

// printLists prints for each list the flagged share, the sources and the signals, and with rows the
// misclassified rows.
func printLists(out io.Writer, results []*result, rows bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "list\tkind\trows\tflagged\tshare\tby weight\tundisputed")
	for _, r := range results {
		weighted, undisputed := "", ""
		if r.weight > 0 {
			weighted = fmt.Sprintf("%.3f %%", 100*r.flaggedWeight/r.weight)
		}
		if r.undisputed.rows < r.rows {
			undisputed = formatShare(r.undisputed)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", filepath.Base(r.file), r.kind, r.rows, r.flagged,
			formatPercent(r.flagged, r.rows), weighted, undisputed)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "A client with a score of %v or more is flagged: recall in lists of bots, false positives elsewhere. The score\n"+
		"has the user agent; in header sets also the other headers.\n", bot.SuspectThreshold)
	for _, r := range results {
		if len(r.sources) > 0 {
			printSources(w, r)
		}
	}
	printSignals(w, results)
	if rows {
		for _, r := range results {
			fmt.Fprintf(w, "\n%s, misclassified:\n", filepath.Base(r.file))
			for _, line := range r.misclassified {
				fmt.Fprintln(w, line)
			}
		}
	}
	return w.Flush()
}

// printSources prints the recall by source. It separates the source of the detector's patterns from
// the sources that contributed no pattern.
func printSources(w io.Writer, r *result) {
	fmt.Fprintf(w, "\n%s, by source\trows\tflagged\tshare\n", filepath.Base(r.file))
	line := func(name string, c count) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", name, c.rows, c.flagged, formatPercent(c.flagged, c.rows))
	}
	if r.kind == kindBots {
		line(fmt.Sprintf("listed by the source of the patterns (%s: %s)", patternSource, agent.Release()), r.inPatternSource)
		line("listed only by other sources", r.notInPatternSource)
	}
	for _, source := range slices.Sorted(maps.Keys(r.sources)) {
		line("  "+source, *r.sources[source])
	}
}

// printSignals prints the number of rows by signal and list.
func printSignals(w io.Writer, results []*result) {
	names := map[string]bool{}
	fmt.Fprint(w, "\nsignal")
	for _, r := range results {
		fmt.Fprintf(w, "\t%s", filepath.Base(r.file))
		for name := range r.signals {
			names[name] = true
		}
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprint(w, name)
		for _, r := range results {
			fmt.Fprintf(w, "\t%d", r.signals[name])
		}
		fmt.Fprintln(w)
	}
}

func formatShare(c count) string {
	return fmt.Sprintf("%d of %d, %s", c.flagged, c.rows, formatPercent(c.flagged, c.rows))
}

func formatPercent(part, of int) string {
	if of == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(of))
}
