package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Locale answers POST /session/locale.
func (d *Handlers) Locale(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Locale string `json:"locale"`
	}
	if err := web.Decode(r, &in); err != nil {
		return d.guests.CountRejected(w, r, err)
	}
	if in.Locale == "" {
		return d.guests.CountRejected(w, r, problem.Invalid(problem.FieldError{Field: "locale", Code: "required", Detail: "Say which language."}))
	}
	tag, err := web.ParseLocale("locale", in.Locale)
	if err != nil {
		return d.guests.CountRejected(w, r, err)
	}
	return d.setPreference(w, r, func(s *session.Session) { s.SetLocale(tag) })
}

// Currency answers POST /session/currency.
func (d *Handlers) Currency(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Currency string `json:"currency"`
	}
	if err := web.Decode(r, &in); err != nil {
		return d.guests.CountRejected(w, r, err)
	}
	if in.Currency == "" {
		return d.guests.CountRejected(w, r, problem.Invalid(problem.FieldError{Field: "currency", Code: "required", Detail: "Say which currency."}))
	}
	c, err := web.ParseCurrency("currency", in.Currency)
	if err != nil {
		return d.guests.CountRejected(w, r, err)
	}
	return d.setPreference(w, r, func(s *session.Session) { s.SetCurrency(c) })
}

// setPreference keeps a preference in Redis, where it lives; the event of the change may wait there too. A wish that was not
// kept must not look as if it was.
func (d *Handlers) setPreference(w http.ResponseWriter, r *http.Request, set func(*session.Session)) error {
	ctx, v, err := d.begin(d.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	set(v.Session)
	now, err := d.loadState(ctx, v, readTimeout)
	if err != nil {
		return err
	}
	if err := d.longTimeoutGuests.FinishRequired(ctx, w, v.Guest, now.repair); err != nil {
		return notSavedProblem(err)
	}
	return web.WriteJSON(w, http.StatusOK, newGuestSession(v, now))
}
