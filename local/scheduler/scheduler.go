// Package scheduler owns the clock of the local system: it publishes on the topic of each job when its time has come,
// as Cloud Scheduler does, and remembers how each job went. It never knows what a job does.
package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

// TickPayload are what a job is told when its time has come.
const TickPayload = "{}"

// Status is how a run of a job went.
type Status string

const (
	OK     Status = "ok"
	Failed Status = "failed" // it is tried again, as often as its subscription allows
)

// Job is a job with what is known of its runs.
type Job struct {
	Name      string
	Schedule  string
	StartedAt time.Time // the last time; zero when it never was
	LastRun   Run       // the last that ended; its At is zero when none has
}

// Run is one run, or one attempt at it.
type Run struct {
	Status  Status
	At      time.Time // of its answer
	Attempt int       // 1 unless it failed before
	Report  any       // what the function said, as JSON has it; nil when that was nothing
}

// Scheduler is safe for concurrent use.
type Scheduler struct {
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

// New knows the jobs of a table. publish gives the tick of one to the broker.
func New(table []pubsub.JobSpec, publish func(ctx context.Context, job string) error) (*Scheduler, error) {
	s := &Scheduler{publish: publish}
	for _, j := range table {
		c, err := parseCron(j.Schedule)
		if err != nil {
			return nil, err
		}
		s.jobs = append(s.jobs, scheduledJob{Job{Name: j.Name, Schedule: j.Schedule}, c})
	}
	return s, nil
}

// Start starts the named jobs at once, and then all at the minutes of their cadence, until Stop. Minutes that this
// machine slept through are not made up for.
func (s *Scheduler) Start(now ...string) {
	ctx, stop := context.WithCancel(context.Background())
	s.cancel = stop
	s.wg.Go(func() {
		for _, job := range now {
			s.tick(ctx, job)
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
			for i := range s.jobs { // not a copy: what becomes of a run is written meanwhile
				if s.jobs[i].cron.matches(next) {
					s.tick(ctx, s.jobs[i].Name)
				}
			}
		}
	})
}

// Stop ends the ticking, not what it has started.
func (s *Scheduler) Stop() {
	s.cancel()
	s.wg.Wait()
}

func (s *Scheduler) tick(ctx context.Context, job string) {
	s.RecordStart(job, time.Now())
	if err := s.publish(ctx, job); err != nil && ctx.Err() == nil {
		slog.Error("scheduler: the tick is lost", "job", job, "err", err.Error())
		s.RecordRun(job, Run{Status: Failed, At: time.Now(), Attempt: 1, Report: err.Error()})
	}
}

// RecordStart notes that a job was started.
func (s *Scheduler) RecordStart(job string, at time.Time) {
	s.update(job, func(j *Job) { j.StartedAt = at })
}

// RecordRun notes how a job went.
func (s *Scheduler) RecordRun(job string, r Run) { s.update(job, func(j *Job) { j.LastRun = r }) }

func (s *Scheduler) update(job string, how func(*Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.jobs {
		if s.jobs[i].Name == job {
			how(&s.jobs[i].Job)
		}
	}
}

// Jobs lists all with their last run.
func (s *Scheduler) Jobs() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Job, len(s.jobs))
	for i, j := range s.jobs {
		all[i] = j.Job
	}
	return all
}
