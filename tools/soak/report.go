package main

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

// ledgerSchema is the table of the committed mutations: a mutation inserts its row in the
// transaction of its event. The sequence counts rollbacks, because a rollback does not undo
// nextval.
const ledgerSchema = `
	CREATE SCHEMA soak;
	CREATE TABLE soak.ledger (
		event_id text PRIMARY KEY,
		session  text NOT NULL
	);
	CREATE SEQUENCE soak.undone`

// arrivalLog records the messages that arrived at the broker. Safe for concurrent use.
type arrivalLog struct {
	mu       sync.Mutex
	ackLost  map[string]bool   // by event id: the response of its last message was lost
	latestID map[string]string // by session
	total    int

	outOfOrder, expectedDuplicates, otherDuplicates int
	requestsRefused, responsesLost                  int
}

func newArrivalLog() *arrivalLog {
	return &arrivalLog{ackLost: map[string]bool{}, latestID: map[string]string{}}
}

// record adds the messages of one accepted request. Events of a session are committed in the order
// of their ids, so a lower id after a higher one is out of order.
func (l *arrivalLog) record(some []pubsubtest.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range some {
		l.total++
		lost, again := l.ackLost[a.ID]
		switch {
		case again && lost:
			l.expectedDuplicates++
		case again:
			l.otherDuplicates++
		case a.ID < l.latestID[a.OrderingKey]:
			l.outOfOrder++
		default:
			l.latestID[a.OrderingKey] = a.ID
		}
		l.ackLost[a.ID] = a.ResponseLost
	}
}

func (l *arrivalLog) distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ackLost)
}

func (l *arrivalLog) arrivals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// faultInjector returns the behaviour of the broker: it chooses a fault for each request.
func faultInjector(random *rand.Rand, l *arrivalLog) func(pubsubtest.Request) pubsubtest.Behavior {
	outages := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.ResourceExhausted, codes.Aborted}
	return func(pubsubtest.Request) pubsubtest.Behavior {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case random.Float64() < refuseShare:
			l.requestsRefused++
			return pubsubtest.Behavior{RejectCode: outages[random.IntN(len(outages))]}
		case random.Float64() < loseResponseShare:
			l.responsesLost++
			return pubsubtest.Behavior{LoseResponse: true}
		}
		return pubsubtest.Behavior{}
	}
}

// Report is the result of a trial.
type Report struct {
	Seed                        uint64
	Committed, RolledBack       int // mutations
	KilledWriters, KilledRelays int
	// publish requests: all, refused, accepted with a lost response
	Requests, RequestsRefused, ResponsesLost int
	Arrived                                  int // messages, duplicates included

	Missing            int // committed events that never arrived
	NotCommitted       int // arrived events that were never committed
	OutOfOrder         int // events that arrived after a later event of their session
	ChargedRows        int // rows with a counted attempt, or parked; outages must not count
	ExpectedDuplicates int // repeated after a lost response
	OtherDuplicates    int // repeated after a kill, or without reason

	Took time.Duration
}

const maxDuplicateShare = 0.01 // of the committed mutations; expected duplicates do not count

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d mutations committed, %d rolled back; %d writers and %d relays killed, in %s\n",
		r.Committed, r.RolledBack, r.KilledWriters, r.KilledRelays, r.Took.Round(100*time.Millisecond))
	fmt.Fprintf(&b, "broker: %d requests, %d refused, %d accepted with a lost response; %d messages arrived\n",
		r.Requests, r.RequestsRefused, r.ResponsesLost, r.Arrived)
	fmt.Fprintf(&b, "missing %d, never committed %d, out of order %d, charged %d\n", r.Missing, r.NotCommitted, r.OutOfOrder, r.ChargedRows)
	fmt.Fprintf(&b, "duplicates: %d after lost responses, %d after kills (%.2f %% of the mutations)\n",
		r.ExpectedDuplicates, r.OtherDuplicates, 100*float64(r.OtherDuplicates)/float64(max(1, r.Committed)))
	return b.String()
}

// check returns errFailed, with the seed, when the trial failed.
func (r Report) check() error {
	if r.Missing+r.NotCommitted+r.OutOfOrder+r.ChargedRows > 0 || float64(r.OtherDuplicates) > maxDuplicateShare*float64(r.Committed) {
		return fmt.Errorf("%w: seed %d", errFailed, r.Seed)
	}
	return nil
}

// evaluate compares the arrived messages with the committed mutations.
func (s *soak) evaluate(ctx context.Context) (Report, error) {
	l := s.arrivals
	r := Report{Seed: s.Seed, KilledWriters: s.killed["writer"], KilledRelays: s.killed["relay"], Requests: s.broker.Requests()}
	rows, _ := s.db.Query(ctx, `SELECT event_id FROM soak.ledger`)
	committed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return r, err
	}
	err = s.db.QueryRow(ctx, `
		SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM soak.undone),
		       (SELECT count(*) FROM bff_consumer.outbox WHERE attempts > 0 OR parked_at IS NOT NULL)`).Scan(&r.RolledBack, &r.ChargedRows)
	if err != nil {
		return r, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Committed, r.Arrived, r.RequestsRefused, r.ResponsesLost = len(committed), l.total, l.requestsRefused, l.responsesLost
	r.OutOfOrder, r.ExpectedDuplicates, r.OtherDuplicates = l.outOfOrder, l.expectedDuplicates, l.otherDuplicates
	arrived := 0
	for _, id := range committed {
		if _, ok := l.ackLost[id]; ok {
			arrived++
		}
	}
	r.Missing, r.NotCommitted = len(committed)-arrived, len(l.ackLost)-arrived
	return r, nil
}
