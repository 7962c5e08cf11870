package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Locale answers POST /session/locale with the session and status 200: a new language for the
// session, stored in Redis alone. An absent or unsupported language is 422.
//
// The cost is two Redis round trips of at most 800 ms each, a Postgres read of at most 300 ms, and
// a Postgres write of at most 300 ms if the language changed or the session is new.
//
// Without Redis the answer is 503 and nothing changes, unless only the reply was lost. Without
// Postgres the answer has the copy of the wishlist, and the event waits in a Redis list (500 ms
// more) if the guest's consent is known; a lost event is logged only. A session cleared meanwhile
// is a retriable 503, after up to 1.5 s for the rest of the erasure. The guest may repeat the
// request.
func (h *Handlers) Locale(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Locale string `json:"locale"`
	}
	if err := web.Decode(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	if in.Locale == "" {
		return h.guests.CountRejected(w, r, problem.Invalid(problem.FieldError{Field: "locale", Code: "required", Detail: "A language is required."}))
	}
	tag, err := web.ParseLocale("locale", in.Locale)
	if err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	return h.setPreference(w, r, func(s *session.Session) { s.SetLocale(tag) })
}

// Currency answers POST /session/currency with the session and status 200: a new currency for the
// session, stored in Redis alone. An absent or unsupported currency is 422.
//
// The cost is two Redis round trips of at most 800 ms each, a Postgres read of at most 300 ms, and
// a Postgres write of at most 300 ms if the currency changed or the session is new.
//
// Without Redis the answer is 503 and nothing changes, unless only the reply was lost. Without
// Postgres the answer has the copy of the wishlist, and the event waits in a Redis list (500 ms
// more) if the guest's consent is known; a lost event is logged only. A session cleared meanwhile
// is a retriable 503, after up to 1.5 s for the rest of the erasure. The guest may repeat the
// request.
func (h *Handlers) Currency(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Currency string `json:"currency"`
	}
	if err := web.Decode(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	if in.Currency == "" {
		return h.guests.CountRejected(w, r, problem.Invalid(problem.FieldError{Field: "currency", Code: "required", Detail: "A currency is required."}))
	}
	c, err := web.ParseCurrency("currency", in.Currency)
	if err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	return h.setPreference(w, r, func(s *session.Session) { s.SetCurrency(c) })
}

// setPreference stores a preference and answers with the session. Preferences are stored in Redis
// alone.
//
// The cost is two Redis round trips of at most 800 ms each, a Postgres read of at most 300 ms, and
// a Postgres write of the event of the change.
//
// Without Redis the answer is 503: an unstored preference must not look stored. Without Postgres
// the answer has the copy of the wishlist, and the event waits in a Redis list.
func (h *Handlers) setPreference(w http.ResponseWriter, r *http.Request, set func(*session.Session)) error {
	ctx, g, err := h.begin(h.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	set(g.Session)
	state, err := h.loadState(ctx, g, readTimeout)
	if err != nil {
		return err
	}
	if err := h.longTimeoutGuests.FinishRequired(ctx, w, g.Guest, state.repair); err != nil {
		return notSavedProblem(err)
	}
	return web.WriteJSON(w, http.StatusOK, newGuestSession(g, state))
}
