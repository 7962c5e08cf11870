package adminapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/requestlog"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// overview says how the system does: the requests of the last five minutes, the breakers, and what waits in the outbox.
func (c *Handler) overview(w http.ResponseWriter, r *http.Request) error {
	now := time.Now()
	report, err := c.parts.RequestLog.Read(now)
	if err != nil {
		return err
	}
	for _, name := range sandbox.UpstreamNames {
		if report.Breakers[name] == "" {
			report.Breakers[name] = "closed"
		}
	}
	answer := struct {
		requestlog.Report
		Now         time.Time    `json:"now"`
		SlotSeconds int          `json:"slotSeconds"`
		Outbox      *outboxStats `json:"outbox"` // null: it cannot be read at present
	}{Report: report, Now: now.UTC().Truncate(time.Millisecond), SlotSeconds: requestlog.SlotSeconds}
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if outbox, err := readOutboxStats(ctx, c.parts.DB); err == nil {
		answer.Outbox = &outbox
	}
	return web.WriteJSON(w, http.StatusOK, answer)
}

// maxPlaces is how many places one answer has at most.
const maxPlaces = 500

// places finds the places of the data set by the beginning of a name in any language; all cities without one.
func (c *Handler) places(w http.ResponseWriter, r *http.Request) error {
	q, most := r.URL.Query(), 8
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPlaces {
			return problem.Invalid(problem.FieldError{Field: "limit", Code: "out-of-range", Detail: "Must be from 1 to " + strconv.Itoa(maxPlaces) + "."})
		}
		most = n
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Places []dataset.Place `json:"places"`
	}{c.parts.Data.Places(q.Get("q"), most)})
}
