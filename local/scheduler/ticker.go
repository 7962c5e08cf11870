package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

// ticker calls publish at each minute that a job's schedule matches, and stores the latest run of
// each job. Its methods are safe for concurrent use, except that start comes first and once.
type ticker struct {
	publish func(ctx context.Context, job string) error
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	jobs []scheduledJob
}

type scheduledJob struct {
	Job
	cron cronSchedule
}

// newTicker returns a stopped ticker. publish sends the tick of a job to the broker. newTicker
// returns an error if a schedule is not valid.
func newTicker(table []pubsub.JobSpec, publish func(ctx context.Context, job string) error) (*ticker, error) {
	t := &ticker{publish: publish}
	for _, j := range table {
		c, err := parseCron(j.Schedule)
		if err != nil {
			return nil, err
		}
		t.jobs = append(t.jobs, scheduledJob{Job{Name: j.Name, Schedule: j.Schedule}, c})
	}
	return t, nil
}

// start ticks the jobs named in now at once, and then every job at the minutes of its schedule,
// until stop. It does not make up for minutes in which the machine slept.
func (t *ticker) start(now ...string) {
	ctx, stop := context.WithCancel(context.Background())
	t.cancel = stop
	t.wg.Go(func() {
		for _, job := range now {
			t.tick(ctx, job)
		}
		for {
			next := time.Now().Truncate(time.Minute).Add(time.Minute)
			wait := time.NewTimer(time.Until(next))
			select {
			case <-wait.C:
			case <-ctx.Done():
				wait.Stop()
				return
			}
			for i := range t.jobs { // by index: a copy would race with recordStart and recordRun
				if t.jobs[i].cron.matches(next) {
					t.tick(ctx, t.jobs[i].Name)
				}
			}
		}
	})
}

// stop ends the ticks and waits for a tick that is being published.
func (t *ticker) stop() {
	t.cancel()
	t.wg.Wait()
}

// tick publishes the tick of a job. A tick that cannot be published is logged, recorded as a failed
// run and not repeated.
func (t *ticker) tick(ctx context.Context, job string) {
	t.recordStart(job, time.Now())
	if err := t.publish(ctx, job); err != nil && ctx.Err() == nil {
		slog.Error("scheduler: cannot publish the tick", "job", job, "err", err.Error())
		t.recordRun(job, Run{Status: Failed, At: time.Now(), Attempt: 1, Report: err.Error()})
	}
}

// recordStart stores the latest start of a job. It ignores unknown jobs.
func (t *ticker) recordStart(job string, at time.Time) {
	t.update(job, func(j *Job) { j.StartedAt = at })
}

// recordRun stores the latest run of a job. It ignores unknown jobs.
func (t *ticker) recordRun(job string, r Run) { t.update(job, func(j *Job) { j.LastRun = r }) }

func (t *ticker) update(job string, change func(*Job)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.jobs {
		if t.jobs[i].Name == job {
			change(&t.jobs[i].Job)
		}
	}
}

// list returns copies of all jobs.
func (t *ticker) list() []Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Job, len(t.jobs))
	for i, j := range t.jobs {
		all[i] = j.Job
	}
	return all
}
