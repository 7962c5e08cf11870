package control

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/desk"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/local/traffic"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// inside says how the system does: the requests of the last five minutes, the breakers, and what waits in the outbox.
func (c *Control) inside(w http.ResponseWriter, r *http.Request) error {
	now := time.Now()
	report, err := c.traffic.Read(now)
	if err != nil {
		return err
	}
	for _, name := range sandbox.Names {
		if report.Breakers[name] == "" {
			report.Breakers[name] = "closed"
		}
	}
	answer := struct {
		traffic.Report
		Now         time.Time    `json:"now"`
		SlotSeconds int          `json:"slotSeconds"`
		Outbox      *desk.Outbox `json:"outbox"` // null: it cannot be read at present
	}{Report: report, Now: now.UTC().Truncate(time.Millisecond), SlotSeconds: traffic.SlotSeconds}
	ctx, cancel := context.WithTimeout(r.Context(), pingWithin)
	defer cancel()
	if outbox, err := c.desk.Outbox(ctx); err == nil {
		answer.Outbox = &outbox
	}
	return web.WriteJSON(w, http.StatusOK, answer)
}

// mostPlaces is how many places one answer has at most.
const mostPlaces = 500

// places finds the places of the data set by the beginning of a name in any language; all cities without one.
func (c *Control) places(w http.ResponseWriter, r *http.Request) error {
	q, most := r.URL.Query(), 8
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostPlaces {
			return problem.Invalid(problem.Field{Field: "limit", Code: "out-of-range", Detail: "Must be from 1 to " + strconv.Itoa(mostPlaces) + "."})
		}
		most = n
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Places []dataset.Place `json:"places"`
	}{c.data.Places(q.Get("q"), most)})
}
