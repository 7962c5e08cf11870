package session

import (
	"context"
	"errors"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Consent answers POST /session/consent with the session and status 200. The row in Postgres
// decides: after the commit no event of an opted-out guest is written, even if copies in Redis or
// in other instances are older. A body without a decision is 422.
//
// The cost is two Redis round trips of at most 100 ms each, a Postgres write of at most 1.5 s and a
// Postgres read of at most 300 ms. A new session, a changed language or currency adds a write of
// events, of at most 300 ms in Postgres. The decision is written even when the client hangs up.
//
// Without Redis the decision is recorded, "session" is named in "degraded", and the next GET
// /session with Redis updates the copy. Without Postgres the answer is 503, and the decision is
// recorded only if the reply to the commit was lost; the guest may repeat the request. If Postgres
// fails only at the read, "wishlist" is named in "degraded". A session cleared meanwhile is a
// retriable 503, after up to 1.5 s for the rest of the erasure.
func (h *Handlers) Consent(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Telemetry *bool `json:"consentTelemetry"`
		Marketing *bool `json:"consentMarketing"`
	}
	if err := web.Decode(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	if in.Telemetry == nil && in.Marketing == nil {
		return h.guests.CountRejected(w, r,
			problem.Invalid(problem.FieldError{Field: "body", Code: "required", Detail: "At least one of consentTelemetry and consentMarketing is required."}))
	}
	ctx, g, err := h.begin(h.guests, w, r)
	if err != nil {
		return err
	}
	if err := h.setConsent(ctx, g, in.Telemetry, in.Marketing); err != nil {
		return err
	}
	state, err := h.loadState(ctx, g, readTimeout)
	if err != nil {
		return err
	}
	if result := h.guests.Finish(ctx, w, g.Guest, nil, state.repair); errors.Is(result.SaveErr, session.ErrCleared) {
		return notSavedProblem(result.SaveErr)
	}
	return web.WriteJSON(w, http.StatusOK, newGuestSession(g, state))
}

const writeTimeout = 1500 * time.Millisecond // for a mutation in Postgres, and for mandatory reads

// setConsent records the decision in Postgres, within 1.5 s and also after the client hung up. Its
// errors are problems: 503 without Postgres, and a retriable problem for a session cleared
// meanwhile.
func (h *Handlers) setConsent(ctx context.Context, g *loadedGuest, telemetry, marketing *bool) error {
	defer web.FromContext(ctx).Phase("record")()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return h.guests.HandleCleared(ctx, g.Guest, postgres.Problem(h.sessions.SetConsent(ctx, g.Session, telemetry, marketing)))
}
