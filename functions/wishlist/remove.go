package wishlist

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Remove handles DELETE /wishlist/{propertyId}. Safe for concurrent use.
type Remove struct {
	guests *guest.Controller
	store  *wishlist.Store
}

// Serve answers DELETE /wishlist/{propertyId}: it removes a property from the list and answers 204,
// also for a property that is not on the list. The answer is personal (private, no-store).
// web.Budget bounds the request to 2.5 s.
//
// The cost is two Redis round trips of at most 100 ms each and a Postgres round trip of at most 1.5
// s, which writes the row and the event and continues when the client hangs up. Changes of one
// session's list wait for each other in Postgres. A new session adds a write of its events, of at
// most 300 ms.
//
// Without Postgres the answer is 503, and the property is removed only if the reply to the commit
// was lost; a repetition is harmless. Without Redis the property is removed, and the next read of
// the list repairs the copy. A malformed id is 422; a session cleared meanwhile is a retriable 503,
// after up to 1.5 s for the rest of the erasure.
func (h *Remove) Serve(w http.ResponseWriter, r *http.Request) error {
	property := r.PathValue("propertyId")
	if !id.Valid(id.Property, property) {
		return h.guests.CountRejected(w, r,
			problem.Invalid(problem.FieldError{Field: "propertyId", Code: "malformed", Detail: "Must be the id of a property, ppt_…."}))
	}
	ctx, guest, err := h.guests.Begin(w, r, nil)
	if err != nil {
		return err
	}
	done := web.FromContext(ctx).Phase("record")
	change, err := h.store.Remove(ctx, guest.ID, property, guest.Events(ctx, event.WishlistRemoved{
		GuestSessionID: guest.ID, PropertyID: property, RemovedAt: guest.LastSeenAt,
	})...)
	done()
	if err != nil {
		return mutationProblem(ctx, h.guests, guest, err)
	}
	finishMutation(ctx, w, h.guests, h.store, guest, change)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
