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
func (d *Desk) Consent(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Telemetry *bool `json:"consentTelemetry"`
		Marketing *bool `json:"consentMarketing"`
	}
	if err := web.Decode(r, &in); err != nil {
		return err
	}
	if in.Telemetry == nil && in.Marketing == nil {
		return problem.Invalid(problem.Field{Field: "body", Code: "required", Detail: "Say at least one of consentTelemetry and consentMarketing."})
	}
	ctx, v, err := d.admit(d.door, w, r)
	if err != nil {
		return err
	}
	if err := d.decide(ctx, v, in.Telemetry, in.Marketing); err != nil {
		return err
	}
	now, err := d.look(ctx, v, readWithin)
	if err != nil {
		return err
	}
	if left := d.door.Leave(ctx, w, v.Guest, nil, now.repair); errors.Is(left.Unsaved, session.ErrCleared) {
		return unsaved(left.Unsaved)
	}
	return web.WriteJSON(w, http.StatusOK, show(v, now))
}

const writeWithin = 1500 * time.Millisecond // for a mutation in Postgres, or what is refused without it; the guest hanging up does not end a mutation

func (d *Desk) decide(ctx context.Context, v *visit, telemetry, marketing *bool) error {
	defer web.From(ctx).Phase("record")()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	return d.door.Refused(ctx, v.Guest, postgres.Problem(d.sessions.Decide(ctx, v.Session, telemetry, marketing)))
}
