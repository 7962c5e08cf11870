package control

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/local/desk"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// events lists the events of others that were on their way, oldest first, with what became of each.
func (c *Control) events(w http.ResponseWriter, r *http.Request) error {
	found := []desk.Passage{}
	q := r.URL.Query()
	for _, e := range c.desk.Events() {
		if (!q.Has("eventId") || e.EventID == q.Get("eventId")) && (!q.Has("subject") || e.Subject == q.Get("subject")) {
			found = append(found, e)
		}
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Events []desk.Passage `json:"events"`
	}{found})
}

// publish puts an event of others on its topic.
func (c *Control) publish(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Subject  string                    `json:"subject"`
		Payload  jsontext.Value            `json:"payload"`
		Envelope map[string]jsontext.Value `json:"envelope"`
		Raw      *string                   `json:"raw"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	var wrong []problem.Field
	refuse := func(field, code, detail string) {
		wrong = append(wrong, problem.Field{Field: field, Code: code, Detail: detail})
	}
	if !slices.Contains(desk.Subjects(), in.Subject) {
		refuse("subject", "unsupported", "The subjects are "+strings.Join(desk.Subjects(), ", ")+".")
	}
	switch {
	case in.Raw == nil && in.Payload.Kind() != jsontext.KindBeginObject:
		refuse("payload", "type", "Must be a JSON object.")
	case in.Raw != nil && (in.Payload != nil || in.Envelope != nil):
		refuse("raw", "conflict", "Stands for the whole data: there is neither payload nor envelope beside it.")
	}
	for _, member := range slices.Sorted(maps.Keys(in.Envelope)) {
		if !slices.Contains(desk.Members(), member) {
			refuse("envelope."+member, problem.Unknown, "The members are "+strings.Join(desk.Members(), ", ")+".")
		}
	}
	if wrong != nil {
		return problem.Invalid(wrong...)
	}
	c.comesTrue(in.Subject, in.Payload)
	ctx, cancel := context.WithTimeout(r.Context(), pingWithin)
	defer cancel()
	eventID, messageID, err := c.desk.Publish(ctx, desk.Event{Subject: in.Subject, Payload: in.Payload, Envelope: in.Envelope, Raw: in.Raw})
	if err != nil {
		return problem.New(problem.UpstreamUnavailable, "The broker does not take it at present.", err)
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		EventID   string `json:"eventId,omitzero"` // none when the data is raw
		MessageID string `json:"messageId"`
	}{eventID, messageID})
}

// comesTrue lets theme-config answer what an event of it tells, before anybody hears of it. What the others tell, the sandbox
// has no part in.
func (c *Control) comesTrue(subject string, payload jsontext.Value) {
	var theme struct {
		TenantID string `json:"tenantId"`
		Version  string `json:"publishedVersion"`
	}
	if subject != "melmastoon.theme.published.v1" || json.Unmarshal(payload, &theme) != nil || theme.Version == "" {
		return // an event that is none is published all the same, to see what becomes of it
	}
	c.sandbox.Rebrand(theme.TenantID, theme.Version)
}

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
