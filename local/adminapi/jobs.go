package adminapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// jobStatus is a job in the list of jobs.
type jobStatus struct {
	Job       string  `json:"job"`
	Schedule  string  `json:"cadence"` // five cron fields, in UTC
	StartedAt string  `json:"startedAt,omitzero"`
	LastRun   *jobRun `json:"lastRun"` // the latest run that ended; null before the first
}

type jobRun struct {
	At      string           `json:"at"`
	Status  scheduler.Status `json:"status"`
	Attempt int              `json:"attempt"`
	Report  any              `json:"report"`
}

// jobs lists the scheduler's jobs.
func (c *Handler) jobs(w http.ResponseWriter, _ *http.Request) error {
	var all []jobStatus
	for _, j := range c.parts.Jobs.Jobs() {
		one := jobStatus{Job: j.Name, Schedule: j.Schedule}
		if !j.StartedAt.IsZero() {
			one.StartedAt = timestamp.Format(j.StartedAt)
		}
		if !j.LastRun.At.IsZero() {
			one.LastRun = &jobRun{timestamp.Format(j.LastRun.At), j.LastRun.Status, j.LastRun.Attempt, j.LastRun.Report}
		}
		all = append(all, one)
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Jobs []jobStatus `json:"jobs"`
	}{all})
}

// jobResult is the response of a job that ran.
type jobResult struct {
	Job    string           `json:"job"`
	Status scheduler.Status `json:"status"`
	Report any              `json:"report"`
}

// jobFailure is the problem of a failed job. Only this route uses the code, so no catalogue lists
// it.
type jobFailure struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Job    string `json:"job"`
	Report any    `json:"report"`
}

// runJob runs a job and waits for the function's response; see scheduler.RunJob for the time limit.
// It responds 200 for a finished job, 202 if events are still due after a drain of the outbox, 502
// for a failed job, 404 for a job without a function and 503 if Postgres does not answer.
func (c *Handler) runJob(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("job")
	if !scheduler.HasJob(name) {
		return problem.New(problem.ResourceNotFound, "The jobs are "+strings.Join(scheduler.JobNames(), ", ")+".", nil)
	}
	var in struct {
		DryRun bool `json:"dryRun"`
	}
	if r.ContentLength != 0 {
		if err := decode(r, &in); err != nil {
			return err
		}
	}
	got, err := c.parts.Jobs.RunJob(r.Context(), name, in.DryRun)
	switch {
	case errors.Is(err, scheduler.ErrNoFunction):
		return problem.New(problem.ResourceNotFound, "No function serves this job.", err)
	case err != nil:
		return problem.New(problem.UpstreamUnavailable, "The result of the job is unknown.", err)
	}
	switch got.Status {
	case scheduler.Failed:
		return writeFailure(w, jobFailure{"The job failed.", http.StatusBadGateway, "JOB_FAILED", name, got.Report})
	case scheduler.Running:
		return web.WriteJSON(w, http.StatusAccepted, jobResult{name, got.Status, got.Report})
	default:
		return web.WriteJSON(w, http.StatusOK, jobResult{name, got.Status, got.Report})
	}
}

func writeFailure(w http.ResponseWriter, f jobFailure) error {
	body, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(body) // the client may be gone
	return nil
}
