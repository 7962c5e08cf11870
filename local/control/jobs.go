package control

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/desk"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// job is one of the scheduler as it is listed.
type job struct {
	Job       string  `json:"job"`
	Cadence   string  `json:"cadence"` // as cron has it, UTC
	StartedAt string  `json:"startedAt,omitzero"`
	LastRun   *jobRun `json:"lastRun"` // the last that ended
}

type jobRun struct {
	At      string           `json:"at"`
	Status  scheduler.Status `json:"status"`
	Attempt int              `json:"attempt"`
	Report  any              `json:"report"`
}

// jobs lists the scheduler's jobs.
func (c *Control) jobs(w http.ResponseWriter, _ *http.Request) error {
	var all []job
	for _, j := range c.desk.Jobs() {
		one := job{Job: j.Name, Cadence: j.Cadence}
		if !j.Started.IsZero() {
			one.StartedAt = instant.Text(j.Started)
		}
		if !j.Run.At.IsZero() {
			one.LastRun = &jobRun{instant.Text(j.Run.At), j.Run.Status, j.Run.Attempt, j.Run.Report}
		}
		all = append(all, one)
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Jobs []job `json:"jobs"`
	}{all})
}

// result is what came of a job.
type result struct {
	Job    string           `json:"job"`
	Status scheduler.Status `json:"status"`
	Report any              `json:"report"`
}

// failure is the problem of a job that failed, of this route alone and in no catalogue.
type failure struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Job    string `json:"job"`
	Report any    `json:"report"`
}

// run runs a job now and answers what its function said.
func (c *Control) run(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("job")
	if !desk.Known(name) {
		return problem.New(problem.ResourceNotFound, "The jobs are "+strings.Join(desk.Names(), ", ")+".", nil)
	}
	var in struct {
		DryRun bool `json:"dryRun"`
	}
	if r.ContentLength != 0 {
		if err := decode(r, &in); err != nil {
			return err
		}
	}
	got, err := c.desk.Run(r.Context(), name, in.DryRun)
	switch {
	case errors.Is(err, desk.ErrNoFunction):
		return problem.New(problem.ResourceNotFound, "No function serves this job.", err)
	case err != nil:
		return problem.New(problem.UpstreamUnavailable, "It cannot be said how the job went.", err)
	}
	switch got.Status {
	case scheduler.Failed:
		return fail(w, failure{"The job failed.", http.StatusBadGateway, "JOB_FAILED", name, got.Report})
	case desk.Going:
		return web.WriteJSON(w, http.StatusAccepted, result{name, got.Status, got.Report})
	default:
		return web.WriteJSON(w, http.StatusOK, result{name, got.Status, got.Report})
	}
}

func fail(w http.ResponseWriter, f failure) error {
	body, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(body) // the client may be gone
	return nil
}
