package bot_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

// simulatedRequest is one request of a guest. Calls of shared routes and of telemetry are looked at, not counted.
type simulatedRequest struct {
	at      time.Time
	guest   int
	first   bool // without a cookie: it begins a session
	counted bool
}

// The calls that a guest's client makes at once, counted and not: for the list of results its session, wishlist, search and
// map, with facets and a page view; for a filter the search and the map; for a hotel session and wishlist, with the hotel,
// its availability, a click and a page view; for a heart or a handoff one.
var (
	resultsPage  = [2]int{4, 2}
	filterChange = [2]int{2, 1}
	hotelPage    = [2]int{2, 4}
	heartClick   = [2]int{1, 1}
)

// simulateGuest is a guest's hour, or what is left of it when he comes. The client may know no better than to make its first
// calls at once, before it has a cookie: then each begins a session, and the last is kept.
func simulateGuest(random *rand.Rand, guest int, knowsBetter bool) (calls []simulatedRequest) {
	at := noon.Add(time.Duration(random.Float64() * float64(40*time.Minute)))
	ask := func(what [2]int, first bool) {
		for i := range what[0] + what[1] {
			spread := time.Duration(random.Float64() * float64(300*time.Millisecond))
			calls = append(calls, simulatedRequest{at.Add(spread), guest, first && i < what[0], i < what[0]})
		}
	}
	// pause is a person's: two seconds to look at a page, six tenths between two clicks on it, and mostly longer.
	pause := func(least, more time.Duration) { at = at.Add(least + time.Duration(random.ExpFloat64()*float64(more))) }
	if knowsBetter {
		ask([2]int{1, 0}, true)
		at = at.Add(350 * time.Millisecond)
		ask([2]int{3, 2}, false)
	} else {
		ask(resultsPage, true)
	}
	for pause(2*time.Second, 8*time.Second); at.Before(noon.Add(time.Hour)); pause(2*time.Second, 8*time.Second) {
		switch random.IntN(4) {
		case 0:
			ask(resultsPage, false)
		case 1:
			ask(hotelPage, false)
		case 2:
			ask(heartClick, false)
		default:
			for range 1 + random.IntN(6) {
				ask(filterChange, false)
				pause(600*time.Millisecond, time.Second)
			}
		}
	}
	return calls
}

// A guest's hour never raises a verdict, alone or with others who have the same model of phone behind the same address.
func TestEvaluate_SimulatedGuestHourIsHuman(t *testing.T) {
	human := agent.Classify(chrome)
	requests, fastest := 0, 0
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 1))
		var calls []simulatedRequest
		guests := 1 + random.IntN(12)
		for guest := range guests {
			calls = append(calls, simulateGuest(random, guest, random.IntN(2) == 0)...)
		}
		slices.SortStableFunc(calls, func(a, b simulatedRequest) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
		memory, sessions := bot.NewInMemoryHistory(), make([]string, guests)
		for i, c := range calls {
			requests++
			who := client(sessions[c.guest])
			if c.first {
				who = client("")
			}
			seen := memory.Observe(who, c.at, c.counted)
			fastest = max(fastest, seen.Cadence.Session.Burst)
			score := bot.Evaluate(bot.Evidence{Agent: human, History: seen})
			if score.Verdict != bot.Human {
				t.Fatalf("seed %d, %d guests, request %d at %v: %+v of %+v", seed, guests, i, c.at, score, seen)
			}
			if c.first {
				sessions[c.guest] = fmt.Sprint("gms_", c.guest, "_", i)
				memory.SessionStarted(who, sessions[c.guest], c.at)
			}
		}
	}
	if requests < 50_000 || fastest < 8 {
		t.Errorf("%d requests, at most %d of one guest in 2 s: too easy", requests, fastest)
	}
	t.Logf("%d requests, at most %d of one guest in 2 s", requests, fastest)
}
