package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Locale answers POST /session/locale.
func (d *Desk) Locale(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Locale string `json:"locale"`
	}
	if err := web.Decode(r, &in); err != nil {
		return err
	}
	if in.Locale == "" {
		return problem.Invalid(problem.Field{Field: "locale", Code: "required", Detail: "Say which language."})
	}
	tag, err := web.Locale("locale", in.Locale)
	if err != nil {
		return err
	}
	return d.choose(w, r, func(s *session.Session) { s.ChooseLocale(tag) })
}

// Currency answers POST /session/currency.
func (d *Desk) Currency(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Currency string `json:"currency"`
	}
	if err := web.Decode(r, &in); err != nil {
		return err
	}
	if in.Currency == "" {
		return problem.Invalid(problem.Field{Field: "currency", Code: "required", Detail: "Say which currency."})
	}
	c, err := web.Currency("currency", in.Currency)
	if err != nil {
		return err
	}
	return d.choose(w, r, func(s *session.Session) { s.ChooseCurrency(c) })
}

// choose keeps a preference in Redis, where it lives; the event of the change may wait there too. A wish that was not
// kept must not look as if it was.
func (d *Desk) choose(w http.ResponseWriter, r *http.Request, set func(*session.Session)) error {
	ctx, v, err := d.admit(d.needed, w, r)
	if err != nil {
		return err
	}
	set(v.Session)
	now, err := d.look(ctx, v, readWithin)
	if err != nil {
		return err
	}
	if err := d.needed.LeaveSaved(ctx, w, v.Guest, now.repair); err != nil {
		return unsaved(err)
	}
	return web.WriteJSON(w, http.StatusOK, show(v, now))
}
