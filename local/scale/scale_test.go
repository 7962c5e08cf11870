package scale

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDocumentsHaveTheTablesThatTheModelPrints(t *testing.T) {
	found := map[string]bool{}
	for _, name := range documents {
		document, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		renewed, err := fill(document)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(renewed), string(document)); diff != "" {
			t.Errorf("docs/%s is not what the model prints: ./dev scale renews it\n%s", name, diff)
		}
		for table := range tables {
			found[table] = found[table] || strings.Contains(string(document), begin+table+" -->")
		}
	}
	for table := range tables {
		if !found[table] {
			t.Errorf("no document has the table %s", table)
		}
	}
}

func TestALoadGrowsEverythingAsMuchAsItself(t *testing.T) {
	one := load{"", 1, 50, 0.6, 0.75, false}
	ten := load{"", 10, 500, 0.6, 0.75, false}
	a, b := one.need(), ten.need()
	for name, of := range map[string]func(need) float64{
		"visits": func(n need) float64 { return n.visits }, "cores": func(n need) float64 { return n.cores },
		"Redis": func(n need) float64 { return n.redis }, "disk": func(n need) float64 { return n.disk },
		"connections": func(n need) float64 { return n.connections }, "upstream": func(n need) float64 { return n.upstream },
	} {
		if ratio := of(b) / of(a); ratio < 9.999 || ratio > 10.001 {
			t.Errorf("%s: %v times as much", name, ratio)
		}
	}
}

// What the mix of a visit writes must be what the second's events are: the model takes one from the other.
func TestTheEventsOfAVisitAreThoseOfItsRequests(t *testing.T) {
	n := loads[0].need()
	var rows float64
	for _, k := range kinds {
		rate := n.rate[k.function]
		switch k.name {
		case "search, first visit":
			rows += n.visits * visit.newcomers * k.outbox
		case "search, hit": // hits and misses tell the same
			rows += (rate - n.visits*visit.newcomers) * k.outbox
		case "search, miss", "detail, miss":
		default:
			rows += rate * k.outbox
		}
	}
	rows += n.visits * visit.newcomers // a session's end is told by a sweep
	if got := rows / n.events; got < 0.999 || got > 1.001 {
		t.Errorf("requests write %v of the events", got)
	}
}

func TestMoreAtTheEdgeIsLessAtFunctions(t *testing.T) {
	few, many := load{"", 1, 50, 0.6, 0.75, false}, load{"", 1, 50, 0.6, 0.9, false}
	if a, b := few.need(), many.need(); b.requests >= a.requests || !near(a.edge, b.edge) {
		t.Errorf("functions %v and %v, edge %v and %v", a.requests, b.requests, a.edge, b.edge)
	}
}

func near(a, b float64) bool { return a/b > 0.999 && a/b < 1.001 }

func TestNumbersKeepThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.5: "1.5", 12.345: "12.3", 99.96: "100", 1234567: "1,234,567", 20: "20"} {
		if got := number(v); got != want {
			t.Errorf("%s is %s, want %s", strconv.FormatFloat(v, 'g', -1, 64), got, want)
		}
	}
}
