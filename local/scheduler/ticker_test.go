package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

func TestCronSchedule_MatchesCronSemantics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cadence, at string
		want        bool
	}{
		{"* * * * *", "2026-11-20T10:00:00Z", true},
		{"17 3 * * *", "2026-11-20T03:17:59Z", true},
		{"17 3 * * *", "2026-11-20T03:18:00Z", false},
		{"17 3 * * *", "2026-11-20T06:47:00+03:30", true}, // compared in UTC
		{"*/15 * * * *", "2026-11-20T03:45:00Z", true},
		{"*/15 * * * *", "2026-11-20T03:44:00Z", false},
		{"5/20 * * * *", "2026-11-20T03:45:00Z", true},
		{"0 8-10,20 * * *", "2026-11-20T20:00:00Z", true},
		{"0 8-10,20 * * *", "2026-11-20T11:00:00Z", false},
		{"0 0 1 * *", "2026-12-01T00:00:00Z", true},
		{"0 0 * 2 *", "2026-11-01T00:00:00Z", false},
		{"0 0 * * 7", "2026-11-22T00:00:00Z", true}, // a Sunday
		{"0 0 * * 1-5", "2026-11-22T00:00:00Z", false},
		{"0 0 13 * 5", "2026-11-20T00:00:00Z", true}, // a Friday, or a 13th
		{"0 0 13 * *", "2026-11-20T00:00:00Z", false},
	} {
		parsed, err := parseCron(c.cadence)
		at, wrong := time.Parse(time.RFC3339, c.at)
		if err != nil || wrong != nil || parsed.matches(at) != c.want {
			t.Errorf("%s at %s: want match %v, errors %v %v", c.cadence, c.at, c.want, err, wrong)
		}
	}
	for _, bad := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "x * * * *", "5-1 * * * *", "*/0 * * * *", "1-x * * * *", "*/x * * * *"} {
		if _, err := newTicker([]pubsub.JobSpec{{Name: "bad", Schedule: bad}}, nil); err == nil {
			t.Errorf("schedule %q: got no error", bad)
		}
	}
}

func TestJobs_HaveValidScheduleAndSubscription(t *testing.T) {
	t.Parallel()
	if _, err := newTicker(pubsub.Jobs(), nil); err != nil {
		t.Error(err)
	}
	for _, j := range pubsub.Jobs() {
		if s, ok := pubsub.JobSubscription(j.Name); !ok || s.Topic != "bff-consumer.jobs."+j.Name {
			t.Errorf("job %s: got subscription %+v", j.Name, s)
		}
	}
}

func TestScheduler_TicksThroughOneDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now() // the clock of a synctest bubble starts at midnight
		var mu sync.Mutex
		ticks := map[string][]time.Duration{}
		s, err := newTicker([]pubsub.JobSpec{{Name: "often", Schedule: "* * * * *"}, {Name: "daily", Schedule: "17 3 * * *"}}, func(_ context.Context, job string) error {
			mu.Lock()
			defer mu.Unlock()
			ticks[job] = append(ticks[job], time.Since(begun))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Second + 7)
		s.start("often")
		time.Sleep(24 * time.Hour)
		s.stop()
		often := ticks["often"]
		if len(often) != 1+24*60 || often[0] != 20*time.Second+7 || often[1] != time.Minute || often[2] != 2*time.Minute {
			t.Errorf("%d ticks: %v", len(often), often[:3])
		}
		if want := []time.Duration{3*time.Hour + 17*time.Minute}; !slices.Equal(ticks["daily"], want) {
			t.Errorf("daily ticks: got %v, want %v", ticks["daily"], want)
		}
		time.Sleep(time.Hour)
		if len(ticks["often"]) != len(often) {
			t.Error("ticks continue after stop")
		}
	})
}

func TestScheduler_RecordsRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := newTicker([]pubsub.JobSpec{{Name: "a", Schedule: "0 0 1 1 *"}, {Name: "b", Schedule: "0 0 1 1 *"}}, func(_ context.Context, job string) error {
			if job == "b" {
				return errors.New("no broker")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.start("a", "b")
		synctest.Wait()
		now := time.Now()
		if got := fmt.Sprint(s.list()[0].StartedAt.Equal(now), s.list()[0].LastRun, s.list()[1].LastRun.Status, s.list()[1].LastRun.Report); got != fmt.Sprint(true, Run{}, Failed, "no broker") {
			t.Errorf("got %s, want a started job without a run and a failed run", got)
		}
		s.recordRun("a", Run{OK, now, 1, "done"})
		s.recordRun("nobody", Run{})
		if r := s.list()[0].LastRun; r.Status != OK || r.Report != "done" {
			t.Errorf("got %+v, want ok with report done", r)
		}
		s.stop()
	})
}
