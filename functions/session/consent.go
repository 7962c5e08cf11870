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

// Consent answers POST /session/consent. The record in Postgres is what counts: from its commit on no event of a guest
// who refused is written, whatever any instance or Redis still believes. Redis is told as well; if that fails, the next
// GET /session tells it.
func (d *Handlers) Consent(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Telemetry *bool `json:"consentTelemetry"`
		Marketing *bool `json:"consentMarketing"`
	}
	if err := web.Decode(r, &in); err != nil {
		return d.guests.CountRejected(w, r, err)
	}
	if in.Telemetry == nil && in.Marketing == nil {
		return d.guests.CountRejected(w, r,
			problem.Invalid(problem.FieldError{Field: "body", Code: "required", Detail: "Say at least one of consentTelemetry and consentMarketing."}))
	}
	ctx, v, err := d.begin(d.guests, w, r)
	if err != nil {
		return err
	}
	if err := d.setConsent(ctx, v, in.Telemetry, in.Marketing); err != nil {
		return err
	}
	now, err := d.loadState(ctx, v, readTimeout)
	if err != nil {
		return err
	}
	if left := d.guests.Finish(ctx, w, v.Guest, nil, now.repair); errors.Is(left.SaveErr, session.ErrCleared) {
		return notSavedProblem(left.SaveErr)
	}
	return web.WriteJSON(w, http.StatusOK, newGuestSession(v, now))
}

const writeTimeout = 1500 * time.Millisecond // for a mutation in Postgres, or what is refused without it; the guest hanging up does not end a mutation

func (d *Handlers) setConsent(ctx context.Context, v *loadedGuest, telemetry, marketing *bool) error {
	defer web.FromContext(ctx).Phase("record")()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return d.guests.HandleCleared(ctx, v.Guest, postgres.Problem(d.sessions.SetConsent(ctx, v.Session, telemetry, marketing)))
}
