package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
)

// ledgerTable is where each mutation leaves a row, in the transaction of its event: the truth that arrivals are held
// against. A sequence counts those that were rolled back, because it is not.
const ledgerTable = `
	CREATE SCHEMA soak;
	CREATE TABLE soak.ledger (
		event_id text PRIMARY KEY,
		session  text NOT NULL
	);
	CREATE SEQUENCE soak.undone`

// ledger is what arrived.
type ledger struct {
	mu     sync.Mutex
	seen   map[string]bool // event id, and whether the last one of it was not acknowledged
	newest map[string]string
	all    int

	disorder, forced, rest int
	refused, lost          int // requests
}

func newLedger() *ledger { return &ledger{seen: map[string]bool{}, newest: map[string]string{}} }

// take is told of each request that the broker takes. Events of one session were committed in the order of their ids.
func (l *ledger) take(some []pubsubtest.Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range some {
		l.all++
		lost, again := l.seen[a.ID]
		switch {
		case again && lost:
			l.forced++
		case again:
			l.rest++
		case a.ID < l.newest[a.OrderingKey]:
			l.disorder++
		default:
			l.newest[a.OrderingKey] = a.ID
		}
		l.seen[a.ID] = a.Lost
	}
}

func (l *ledger) distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func (l *ledger) arrivals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// moods decides about each request, one at a time.
func moods(random *rand.Rand, l *ledger) func(pubsubtest.Request) pubsubtest.Reaction {
	outages := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.ResourceExhausted, codes.Aborted}
	return func(pubsubtest.Request) pubsubtest.Reaction {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case random.Float64() < failShare:
			l.refused++
			return pubsubtest.Reaction{Refuse: outages[random.IntN(len(outages))]}
		case random.Float64() < loseShare:
			l.lost++
			return pubsubtest.Reaction{Lose: true}
		}
		return pubsubtest.Reaction{}
	}
}

// Report is what came of a trial.
type Report struct {
	Seed                        uint64
	Committed, RolledBack       int // mutations
	KilledWriters, KilledRelays int
	Requests, Refused, Lost     int // of the broker: all, those refused, those without an answer
	Arrived                     int // messages, repeated ones included

	Missing  int // committed, and never arrived
	Invented int // arrived, and never committed
	Disorder int // came after a later one of their session
	Charged  int // rows that were charged with an attempt or parked
	Forced   int // came again because the broker took them and could not say so
	Rest     int // came again because a relay was killed, or for no reason

	Took time.Duration
}

const restMost = 0.01 // of what was committed

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d mutations committed, %d rolled back; %d writers and %d relays killed, in %s\n",
		r.Committed, r.RolledBack, r.KilledWriters, r.KilledRelays, r.Took.Round(100*time.Millisecond))
	fmt.Fprintf(&b, "broker: %d requests, %d refused, %d taken without an answer; %d messages arrived\n",
		r.Requests, r.Refused, r.Lost, r.Arrived)
	fmt.Fprintf(&b, "missing %d, never committed %d, out of order %d, charged %d\n", r.Missing, r.Invented, r.Disorder, r.Charged)
	fmt.Fprintf(&b, "duplicates: %d owed to lost answers, %d to kills (%.2f %% of the mutations)\n",
		r.Forced, r.Rest, 100*float64(r.Rest)/float64(max(1, r.Committed)))
	return b.String()
}

func (r Report) verdict() error {
	if r.Missing+r.Invented+r.Disorder+r.Charged > 0 || float64(r.Rest) > restMost*float64(r.Committed) {
		return fmt.Errorf("%w: seed %d", errVerdict, r.Seed)
	}
	return nil
}

// judge holds what arrived against what was committed.
func (s *soak) judge(ctx context.Context) (Report, error) {
	l := s.ledger
	r := Report{Seed: s.Seed, KilledWriters: s.killed["writer"], KilledRelays: s.killed["relay"], Requests: s.broker.Requests()}
	rows, _ := s.db.Query(ctx, `SELECT event_id FROM soak.ledger`)
	committed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return r, err
	}
	err = s.db.QueryRow(ctx, `
		SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM soak.undone),
		       (SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0 OR parked_at IS NOT NULL)`).Scan(&r.RolledBack, &r.Charged)
	if err != nil {
		return r, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Committed, r.Arrived, r.Refused, r.Lost = len(committed), l.all, l.refused, l.lost
	r.Disorder, r.Forced, r.Rest = l.disorder, l.forced, l.rest
	here := 0
	for _, id := range committed {
		if _, ok := l.seen[id]; ok {
			here++
		}
	}
	r.Missing, r.Invented = len(committed)-here, len(l.seen)-here
	return r, nil
}
