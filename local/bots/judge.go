package bots

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
	bots    = "bots"
	humans  = "humans"
	headers = "headers" // of humans
)

// row is a client of a list. Lists of humans may have a weight, lists of bots who says so.
type row struct {
	UA       string            `json:"ua"`
	Weight   float64           `json:"w"`
	Sources  []string          `json:"src"`
	Disputed bool              `json:"disputed"`
	Headers  map[string]string `json:"headers"`
}

// result is what came of a list.
type result struct {
	file, kind    string
	rows, flagged int
	weight, heavy float64 // of all rows and of the flagged ones, where rows have one
	undisputed    count
	listed        count             // rows that are also in the list the patterns were taken from
	unlisted      count             // rows of other lists only
	sources       map[string]*count // by each list that has them
	signals       map[string]int    // what was said, and of how many rows
	scores        map[float64]int
	wrong         []string
}

// count is how many there were, and how many of them were flagged.
type count struct{ rows, flagged int }

func (c *count) add(flagged bool) {
	c.rows++
	if flagged {
		c.flagged++
	}
}

// taken is the source, as bots.jsonl calls it, whose patterns are the room's list.
const taken = "monperrus"

func judge(file, kind string) (*result, error) {
	r := &result{file: file, kind: kind, sources: map[string]*count{}, signals: map[string]int{}, scores: map[float64]int{}}
	err := each(file, func(client row) error {
		if kind == headers {
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

func (r *result) add(client row) {
	evidence := bot.Evidence{Agent: agent.Judge(client.UA)}
	if r.kind == headers {
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
		r.heavy += client.Weight
	}
	if flagged != (r.kind == bots) {
		r.wrong = append(r.wrong, strings.TrimSpace(fmt.Sprintf("%s %s %s", evidence.Agent.Kind, evidence.Agent.Name, evidence.Anomaly))+"\t"+client.UA)
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
	case slices.Contains(client.Sources, taken):
		r.listed.add(flagged)
	case len(client.Sources) > 0:
		r.unlisted.add(flagged)
	}
}

func headerSet(pairs map[string]string) http.Header {
	h := http.Header{}
	for name, value := range pairs {
		h.Set(name, value)
	}
	return h
}
