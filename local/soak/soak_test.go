package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

// TestMain is also the processes of the trial, which start this program again.
func TestMain(m *testing.M) {
	if os.Getenv("SOAK_CHILD") != "" {
		if err := Child(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestNothingIsLostInventedOrOutOfOrderWhileAllAreKilled(t *testing.T) {
	o := Options{Mutations: 4000, Kills: 16, Rate: 1500, Seed: uint64(time.Now().UnixNano()), Out: t.Output()}
	if testing.Short() {
		o.Mutations, o.Kills = 800, 4
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r, err := Run(ctx, o)
	if _, missing := errors.AsType[stores.ErrMissing](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	// Sixteen kills weigh more on so few mutations than a hundred on fifty times as many: here each may cost what its
	// relay can have under way.
	const underWay = 4 * 32
	if err != nil && !(errors.Is(err, errVerdict) && r.Missing+r.Invented+r.Disorder+r.Charged == 0 && r.Rest <= underWay*r.KilledRelays) {
		t.Error(err)
	}
	if r.Committed < o.Mutations || r.KilledWriters+r.KilledRelays != o.Kills || r.RolledBack == 0 || r.Lost == 0 || r.Refused == 0 {
		t.Errorf("that was no trial: %+v", r)
	}
}

func TestWhatIsWrongIsSeen(t *testing.T) {
	l := newLedger()
	take := func(id, session string, lost bool) {
		l.take([]pubsubtest.Arrival{{ID: id, OrderingKey: session, Lost: lost}})
	}
	take("1", "a", true)
	take("1", "a", false) // forced
	take("1", "a", false) // not
	take("3", "a", false)
	take("2", "a", false) // too late
	take("2", "b", false)
	if l.forced != 1 || l.rest != 2 || l.disorder != 1 || l.distinct() != 3 || l.arrivals() != 6 {
		t.Errorf("%+v", l)
	}
	for name, bad := range map[string]Report{
		"missing": {Committed: 100, Missing: 1}, "invented": {Committed: 100, Invented: 1}, "disorder": {Committed: 100, Disorder: 1},
		"charged": {Committed: 100, Charged: 1}, "too many": {Committed: 100, Rest: 2},
	} {
		if !errors.Is(bad.verdict(), errVerdict) {
			t.Errorf("%s passes", name)
		}
	}
	if err := (Report{Committed: 100, Rest: 1, Forced: 50}).verdict(); err != nil {
		t.Error(err)
	}
}
