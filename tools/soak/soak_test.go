package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

// TestMain also runs the processes of the trial, which are this test binary.
func TestMain(m *testing.M) {
	if os.Getenv("SOAK_CHILD") != "" {
		if err := runChild(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestTrial_DeliversAllEventsWhileProcessesAreKilled(t *testing.T) {
	o := options{Mutations: 4000, Kills: 16, Rate: 1500, Seed: uint64(time.Now().UnixNano()), Out: t.Output()}
	if testing.Short() {
		o.Mutations, o.Kills = 800, 4
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r, err := runTrial(ctx, o)
	if _, missing := errors.AsType[localstores.MissingError](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	// On so few mutations each kill weighs more than in a full trial, so the bound is not 1 %: a
	// killed relay may repeat the messages that it had in flight.
	const inFlight = 4 * 32
	if err != nil && !(errors.Is(err, errFailed) && r.Missing+r.NotCommitted+r.OutOfOrder+r.ChargedRows == 0 && r.OtherDuplicates <= inFlight*r.KilledRelays) {
		t.Error(err)
	}
	if r.Committed < o.Mutations || r.KilledWriters+r.KilledRelays != o.Kills || r.RolledBack == 0 || r.ResponsesLost == 0 || r.RequestsRefused == 0 {
		t.Errorf("the trial has too few mutations, kills or faults: %+v", r)
	}
}

func TestReport_CheckFailsOnEachDefect(t *testing.T) {
	t.Parallel()
	l := newArrivalLog()
	take := func(id, session string, lost bool) {
		l.record([]pubsubtest.Message{{ID: id, OrderingKey: session, ResponseLost: lost}})
	}
	take("1", "a", true)
	take("1", "a", false) // after a lost response
	take("1", "a", false) // without a reason
	take("3", "a", false)
	take("2", "a", false) // out of order
	take("2", "b", false)
	if l.expectedDuplicates != 1 || l.otherDuplicates != 2 || l.outOfOrder != 1 || l.distinct() != 3 || l.arrivals() != 6 {
		t.Errorf("after-loss %d, other %d, out of order %d, distinct %d, total %d; want 1, 2, 1, 3, 6",
			l.expectedDuplicates, l.otherDuplicates, l.outOfOrder, l.distinct(), l.arrivals())
	}
	for name, bad := range map[string]Report{
		"missing": {Committed: 100, Missing: 1}, "invented": {Committed: 100, NotCommitted: 1}, "out of order": {Committed: 100, OutOfOrder: 1},
		"charged": {Committed: 100, ChargedRows: 1}, "too many duplicate": {Committed: 100, OtherDuplicates: 2},
	} {
		if !errors.Is(bad.check(), errFailed) {
			t.Errorf("a report with %s events passes the check", name)
		}
	}
	if err := (Report{Committed: 100, OtherDuplicates: 1, ExpectedDuplicates: 50}).check(); err != nil {
		t.Error(err)
	}
}
