package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

// The kinds of lists.
const (
	kindBots    = "bots"
	kindHumans  = "humans"
	kindHeaders = "headers" // header sets of humans
)

// row is a client of a list. Lists of humans may have weights; lists of bots name their sources.
type row struct {
	UA       string            `json:"ua"`
	Weight   float64           `json:"w"`
	Sources  []string          `json:"src"`
	Disputed bool              `json:"disputed"`
	Headers  map[string]string `json:"headers"`
}

// result is the classification of a list.
type result struct {
	file, kind            string
	rows, flagged         int
	weight, flaggedWeight float64 // sums; 0 without weights
	undisputed            count
	inPatternSource       count             // rows in patternSource
	notInPatternSource    count             // rows of other sources only
	sources               map[string]*count // by source
	signals               map[string]int    // rows by signal
	scores                map[float64]int
	misclassified         []string
}

// count is a number of rows and the flagged part of it.
type count struct{ rows, flagged int }

func (c *count) add(flagged bool) {
	c.rows++
	if flagged {
		c.flagged++
	}
}

// patternSource is the source in bots.jsonl from which shared/bot/agent takes its patterns.
const patternSource = "monperrus"

// evaluateList classifies the clients of a file. An error names the file and the line.
func evaluateList(file, kind string) (*result, error) {
	r := &result{file: file, kind: kind, sources: map[string]*count{}, signals: map[string]int{}, scores: map[float64]int{}}
	err := forEachLine(file, func(client row) error {
		if kind == kindHeaders {
			if client.Headers == nil {
				return fmt.Errorf("a row without headers")
			}
			client.UA = headerSet(client.Headers).Get("User-Agent")
		}
		r.add(client)
		return nil
	})
	return r, err
}

// add classifies one client by its user agent, and in lists of header sets by the headers too. A
// client is flagged when the verdict is not human.
func (r *result) add(client row) {
	evidence := bot.Evidence{Agent: agent.Classify(client.UA)}
	if r.kind == kindHeaders {
		evidence.Anomaly = agent.Anomaly(headerSet(client.Headers))
	}
	score := bot.Evaluate(evidence)
	flagged := score.Verdict != bot.Human
	r.signals["ua-pattern: "+evidence.Agent.Kind.String()]++
	if evidence.Anomaly != "" {
		r.signals["header-anomaly: "+evidence.Anomaly]++
	}
	r.rows++
	r.scores[score.Value]++
	r.weight += client.Weight
	if flagged {
		r.flagged++
		r.flaggedWeight += client.Weight
	}
	if flagged != (r.kind == kindBots) {
		r.misclassified = append(r.misclassified, strings.TrimSpace(fmt.Sprintf("%s %s %s", evidence.Agent.Kind, evidence.Agent.Name, evidence.Anomaly))+"\t"+client.UA)
	}
	if !client.Disputed {
		r.undisputed.add(flagged)
	}
	for _, source := range client.Sources {
		if r.sources[source] == nil {
			r.sources[source] = &count{}
		}
		r.sources[source].add(flagged)
	}
	switch {
	case slices.Contains(client.Sources, patternSource):
		r.inPatternSource.add(flagged)
	case len(client.Sources) > 0:
		r.notInPatternSource.add(flagged)
	}
}

func headerSet(pairs map[string]string) http.Header {
	h := http.Header{}
	for name, value := range pairs {
		h.Set(name, value)
	}
	return h
}
