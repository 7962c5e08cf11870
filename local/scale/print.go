package scale

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// documents are those that have tables of ours, each between two marks: <!-- scale: name --> and <!-- scale end -->.
var documents = []string{"scale.md", "deploy.md"}

// tables by name, in Markdown.
var tables = map[string]func() string{
	"requests": requests, "grows": grows, "limits": first, "costs": costs, "inputs": inputs,
}

// Write renews the tables in docs/ of the repository at root, and returns the documents that were not as they are now.
func Write(root string) (changed []string, _ error) {
	for _, name := range documents {
		path := filepath.Join(root, "docs", name)
		old, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("scale: read a document: %w", err)
		}
		renewed, err := fill(old)
		if err != nil {
			return nil, fmt.Errorf("scale: %s: %w", name, err)
		}
		if bytes.Equal(old, renewed) {
			continue
		}
		if err := os.WriteFile(path, renewed, 0o644); err != nil {
			return nil, fmt.Errorf("scale: write a document: %w", err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}

const begin, end = "<!-- scale: ", "<!-- scale end -->"

// fill puts what the tables are now between the marks of a document.
func fill(document []byte) ([]byte, error) {
	var out strings.Builder
	rest := string(document)
	for {
		before, after, ok := strings.Cut(rest, begin)
		out.WriteString(before)
		if !ok {
			return []byte(out.String()), nil
		}
		name, after, _ := strings.Cut(after, " -->\n")
		table, known := tables[name]
		_, after, closed := strings.Cut(after, end)
		if !known || !closed {
			return nil, fmt.Errorf("the table %q is not known or has no end", name)
		}
		fmt.Fprintf(&out, "%s%s -->\n%s%s", begin, name, table(), end)
		rest = after
	}
}

// table is Markdown: a head, and rows of as many cells.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := slices.Repeat([]string{"---"}, len(head))
	for i, cell := range rows[0] {
		if strings.IndexFunc(cell, func(c rune) bool { return !strings.ContainsRune("0123456789,.×", c) }) < 0 {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func requests() string {
	var rows [][]string
	for _, k := range kinds {
		rows = append(rows, []string{k.name, number(k.cpu), number(k.redis), number(k.postgres), number(k.trips), number(k.commands),
			number(k.upstream), number(k.outbox), number(k.wal), number(k.out)})
	}
	return table([]string{"", "CPU, µs", "of Redis", "of Postgres", "trips to Redis", "commands", "upstream calls", "outbox rows",
		"WAL, bytes", "answer, bytes"}, rows)
}

func inputs() string {
	return fmt.Sprintf("A visit: %s of the visitors are new; %s searches, %s map, %s facets, %s pages of hotels, %s availabilities, %s page views, %s clicks, "+
		"%s wishes, %s handoffs. %s events a second at 1×.\n", number(visit.newcomers), number(visit.searches), number(visit.maps), number(visit.facets),
		number(visit.pages), number(visit.days), number(visit.views), number(visit.clicks), number(visit.wishes), number(visit.handoffs), number(steadyEvents))
}

func grows() string {
	rows := []struct {
		name string
		of   func(need) float64
	}{
		{"visits a second", func(n need) float64 { return n.visits }},
		{"requests a second at the edge", func(n need) float64 { return n.edge }},
		{"requests a second at functions", func(n need) float64 { return n.requests }},
		{"cores of functions", func(n need) float64 { return n.cores }},
		{"instances, a core 60 % busy", func(n need) float64 { return math.Ceil(n.cores / busy) }},
		{"cores of Redis", func(n need) float64 { return n.redisCores }},
		{"round trips to Redis a second", func(n need) float64 { return n.trips }},
		{"commands of Redis a second", func(n need) float64 { return n.commands }},
		{"sessions that live, million", func(n need) float64 { return n.sessions / 1e6 }},
		{"memory of Redis, GB", func(n need) float64 { return n.redis / 1e9 }},
		{"of that no sessions, GB", func(n need) float64 { return n.redisOther / 1e9 }},
		{"days of newcomers that 4 GB hold", func(n need) float64 {
			return max(0, deployed.redisGB*0.8e9-n.redisOther) / (n.sessions / 30 * n.sessionBytes)
		}},
		{"cores of Postgres", func(n need) float64 { return n.dbCores }},
		{"transactions that write, a second", func(n need) float64 { return n.writes }},
		{"connections busy at once", func(n need) float64 { return n.connections }},
		{"WAL, MB a second", func(n need) float64 { return n.wal / 1e6 }},
		{"outbox of 30 days, TB", func(n need) float64 { return n.outboxDisk / 1e12 }},
		{"sweep of a day's outbox, s", func(n need) float64 { return n.sweep }},
		{"messages to Pub/Sub a second", func(n need) float64 { return n.events }},
		{"to Pub/Sub, MB a second", func(n need) float64 { return n.events * message / 1e6 }},
		{"relays, at 70 % of what one sends", func(n need) float64 { return math.Ceil(n.relay / 0.7) }},
		{"searches in flight while upstream takes 1.5 s", func(n need) float64 { return n.searchMisses * 1.5 }},
		{"upstream calls a second", func(n need) float64 { return n.upstream }},
		{"from functions, MB a second", func(n need) float64 { return n.bytesOut / 1e6 }},
		{"to guests, MB a second", func(n need) float64 { return n.edgeOut / 1e6 }},
	}
	head := []string{""}
	var all []need
	for _, l := range loads {
		head = append(head, l.name)
		all = append(all, l.need())
	}
	var lines [][]string
	for _, r := range rows {
		line := []string{r.name}
		for _, n := range all {
			line = append(line, number(r.of(n)))
		}
		lines = append(lines, line)
	}
	return table(head, lines)
}

// first are the limits in the order in which they are reached.
func first() string {
	all := limits()
	slices.SortFunc(all, func(a, b limit) int {
		switch {
		case a.full() != b.full():
			return int(math.Copysign(1, a.full()-b.full()))
		default:
			return strings.Compare(a.name, b.name)
		}
	})
	var rows [][]string
	for _, l := range all {
		if l.full() > 2000 {
			continue
		}
		rows = append(rows, []string{l.name, number(l.taken) + " of " + number(l.there) + " " + l.unit, number(l.full()) + "×", l.then, l.metric})
	}
	return table([]string{"", "taken at 1×", "full at", "what then", "seen by"}, rows)
}

func costs() string {
	n, peak := loads[0].need(), loads[1].need()
	const cpus, memoryGB = 2, 7.5
	small := n.bills(deployed.redisGB, cpus, memoryGB, n.disk/1e9)
	whole := n.bills(math.Ceil(n.redis/0.8e9), cpus, memoryGB, n.disk/1e9)
	day := peak.bills(math.Ceil(n.redis/0.8e9), 4, 15, n.disk/1e9)
	var rows [][]string
	var sums [3]float64
	for i := range small {
		a, b, c := small[i].perHour*730, whole[i].perHour*730, day[i].perHour*24
		rows = append(rows, []string{small[i].name, dollars(a), dollars(b), dollars(c)})
		for j, v := range []float64{a, b, c} {
			sums[j] += v
		}
	}
	rows = append(rows, []string{"**sum**", dollars(sums[0]), dollars(sums[1]), dollars(sums[2])})
	return table([]string{"US dollars", "steady, as deployed, a month", "steady, Redis for 30 days of sessions, a month", "at the campaign's peak, a day"}, rows)
}

func dollars(v float64) string { return number(v) }

// number has three digits that count, and more only before the point.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return thousands(int64(math.Round(v)))
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := fmt.Sprintf("%.*f", min(decimals, 5), v)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func thousands(v int64) string {
	text := fmt.Sprint(v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
