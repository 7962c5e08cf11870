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
// also for a property that is not on the list. The answer is personal; costs, budgets and failures
// are those of Add.Serve.
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
