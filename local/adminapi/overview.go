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

// overview responds with the requests of the last five minutes, the state of the circuit breakers
// and the number of events in the outbox.
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
		Outbox      *outboxStats `json:"outbox"` // null if Postgres does not answer within 2 s
	}{Report: report, Now: now.UTC().Truncate(time.Millisecond), SlotSeconds: requestlog.SlotSeconds}
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if outbox, err := readOutboxStats(ctx, c.parts.DB); err == nil {
		answer.Outbox = &outbox
	}
	return web.WriteJSON(w, http.StatusOK, answer)
}

// maxPlaces is the largest value of the query parameter limit; the default is 8.
const maxPlaces = 500

// places finds places of the data set by a prefix of their name in any language. Without a prefix
// it lists cities.
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
