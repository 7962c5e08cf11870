package wishlist

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Remove answers DELETE /wishlist/{propertyId}.
type Remove struct {
	door *admission.Door
	room *wishlist.Room
}

// NewRemove makes the handler.
func NewRemove(p *setup.Parts, room *wishlist.Room) *Remove { return &Remove{p.Door, room} }

// Serve takes a property off the list: 204, also when it was not there.
func (h *Remove) Serve(w http.ResponseWriter, r *http.Request) error {
	property := r.PathValue("propertyId")
	if !id.Valid(id.Property, property) {
		return problem.Invalid(problem.Field{Field: "propertyId", Code: "malformed", Detail: "Must be the id of a property, ppt_…."})
	}
	ctx, guest, err := h.door.Admit(w, r, nil)
	if err != nil {
		return err
	}
	done := web.From(ctx).Phase("record")
	change, err := h.room.Remove(ctx, guest.ID, property, guest.Events(ctx, event.WishlistRemoved{
		GuestSessionID: guest.ID, PropertyID: property, RemovedAt: guest.LastSeenAt,
	})...)
	done()
	if err != nil {
		return refused(ctx, h.door, guest, err)
	}
	leave(ctx, w, h.door, h.room, guest, change)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
