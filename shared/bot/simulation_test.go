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

// simulatedRequest is one request of a guest. Requests of shared routes and of telemetry are not
// counted.
type simulatedRequest struct {
	at      time.Time
	guest   int
	first   bool // without a cookie: the request starts a session
	counted bool
}

// The requests that a web client sends at once, counted and uncounted. Results page: session,
// wishlist, search and map; facets and page view. Filter: search and map; a page view. Hotel page:
// session and wishlist; hotel, availability, click and page view. Wishlist click or handoff: one
// and one.
var (
	resultsPage  = [2]int{4, 2}
	filterChange = [2]int{2, 1}
	hotelPage    = [2]int{2, 4}
	heartClick   = [2]int{1, 1}
)

// simulateGuest returns the requests of a guest from a random arrival to the end of the hour.
// Without awaitsCookie the web client sends its first requests at once, before it has a cookie:
// each starts a session, and the last session stays.
func simulateGuest(random *rand.Rand, guest int, awaitsCookie bool) (requests []simulatedRequest) {
	at := noon.Add(time.Duration(random.Float64() * float64(40*time.Minute)))
	send := func(counts [2]int, first bool) {
		for i := range counts[0] + counts[1] {
			spread := time.Duration(random.Float64() * float64(300*time.Millisecond))
			requests = append(requests, simulatedRequest{at.Add(spread), guest, first && i < counts[0], i < counts[0]})
		}
	}
	// pause is the pause of a person: at least 2 s on a page, at least 0.6 s between two clicks,
	// mostly longer.
	pause := func(least, more time.Duration) { at = at.Add(least + time.Duration(random.ExpFloat64()*float64(more))) }
	if awaitsCookie {
		send([2]int{1, 0}, true)
		at = at.Add(350 * time.Millisecond)
		send([2]int{3, 2}, false)
	} else {
		send(resultsPage, true)
	}
	for pause(2*time.Second, 8*time.Second); at.Before(noon.Add(time.Hour)); pause(2*time.Second, 8*time.Second) {
		switch random.IntN(4) {
		case 0:
			send(resultsPage, false)
		case 1:
			send(hotelPage, false)
		case 2:
			send(heartClick, false)
		default:
			for range 1 + random.IntN(6) {
				send(filterChange, false)
				pause(600*time.Millisecond, time.Second)
			}
		}
	}
	return requests
}

// An hour of guests is always human: of one guest, and of several guests with the same phone model
// behind the same address.
func TestEvaluate_SimulatedGuestHourIsHuman(t *testing.T) {
	t.Parallel()
	human := agent.Classify(chrome)
	requests, fastest := 0, 0
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 1))
		var all []simulatedRequest
		guests := 1 + random.IntN(12)
		for guest := range guests {
			all = append(all, simulateGuest(random, guest, random.IntN(2) == 0)...)
		}
		slices.SortStableFunc(all, func(a, b simulatedRequest) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
		history, sessions := bot.NewInMemoryHistory(), make([]string, guests)
		for i, q := range all {
			requests++
			c := client(sessions[q.guest])
			if q.first {
				c = client("")
			}
			seen := history.Observe(c, q.at, q.counted)
			fastest = max(fastest, seen.Cadence.Session.Burst)
			score := bot.Evaluate(bot.Evidence{Agent: human, History: seen})
			if score.Verdict != bot.Human {
				t.Fatalf("seed %d, %d guests, request %d at %v: %+v for %+v, want human", seed, guests, i, q.at, score, seen)
			}
			if q.first {
				sessions[q.guest] = fmt.Sprint("gms_", q.guest, "_", i)
				history.SessionStarted(c, sessions[q.guest], q.at)
			}
		}
	}
	if requests < 50_000 || fastest < 8 {
		t.Errorf("%d requests, at most %d per session in 2 s; want at least 50,000 and 8", requests, fastest)
	}
	t.Logf("%d requests, at most %d per session in 2 s", requests, fastest)
}
