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

// TestMain is also the processes of the trial, which start this program again.
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

func TestRun_DeliversAllEventsWhileProcessesAreKilled(t *testing.T) {
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
	// Sixteen kills weigh more on so few mutations than a hundred on fifty times as many: here each may cost what its
	// relay can have under way.
	const underWay = 4 * 32
	if err != nil && !(errors.Is(err, errFailed) && r.Missing+r.NotCommitted+r.OutOfOrder+r.ChargedRows == 0 && r.OtherDuplicates <= underWay*r.KilledRelays) {
		t.Error(err)
	}
	if r.Committed < o.Mutations || r.KilledWriters+r.KilledRelays != o.Kills || r.RolledBack == 0 || r.ResponsesLost == 0 || r.RequestsRefused == 0 {
		t.Errorf("that was no trial: %+v", r)
	}
}

func TestReport_CheckFailsOnEachDefect(t *testing.T) {
	l := newArrivalLog()
	take := func(id, session string, lost bool) {
		l.record([]pubsubtest.Message{{ID: id, OrderingKey: session, ResponseLost: lost}})
	}
	take("1", "a", true)
	take("1", "a", false) // forced
	take("1", "a", false) // not
	take("3", "a", false)
	take("2", "a", false) // too late
	take("2", "b", false)
	if l.expectedDuplicates != 1 || l.otherDuplicates != 2 || l.outOfOrder != 1 || l.distinct() != 3 || l.arrivals() != 6 {
		t.Errorf("%+v", l)
	}
	for name, bad := range map[string]Report{
		"missing": {Committed: 100, Missing: 1}, "invented": {Committed: 100, NotCommitted: 1}, "disorder": {Committed: 100, OutOfOrder: 1},
		"charged": {Committed: 100, ChargedRows: 1}, "too many": {Committed: 100, OtherDuplicates: 2},
	} {
		if !errors.Is(bad.check(), errFailed) {
			t.Errorf("%s passes", name)
		}
	}
	if err := (Report{Committed: 100, OtherDuplicates: 1, ExpectedDuplicates: 50}).check(); err != nil {
		t.Error(err)
	}
}
