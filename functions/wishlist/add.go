package wishlist

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Add answers POST /wishlist.
type Add struct {
	door *admission.Door
	room *wishlist.Room
}

// NewAdd makes the handler.
func NewAdd(p *setup.Parts, room *wishlist.Room) *Add { return &Add{p.Door, room} }

type addRequest struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"`
	Source     string `json:"source"`
	Note       string `json:"note"`
}

func (in *addRequest) check() (wrong problem.Faults) {
	switch {
	case in.PropertyID == "":
		wrong.Add("propertyId", "required", "Say which hotel.")
	case !id.Valid(id.Property, in.PropertyID):
		wrong.Add("propertyId", "malformed", "Must be the id of a property, ppt_….")
	}
	switch {
	case in.TenantID == "":
		wrong.Add("tenantId", "required", "Say whose hotel it is.")
	case !id.Valid(id.Tenant, in.TenantID):
		wrong.Add("tenantId", "malformed", "Must be the id of a tenant, tnt_….")
	}
	sources := "Must be one of " + strings.Join(wishlist.Sources, ", ") + "."
	switch {
	case in.Source == "":
		wrong.Add("source", "required", sources)
	case !slices.Contains(wishlist.Sources, in.Source):
		wrong.Add("source", "not-supported", sources)
	}
	if field := web.Text("note", in.Note, wishlist.MaxNote); field != nil {
		wrong = append(wrong, *field)
	}
	return wrong
}

type added struct {
	Item wishlist.Item `json:"item"`
	Size int           `json:"size"`
}

// Serve puts a property on the list: 201 when it is new there, 200 when it was there.
func (h *Add) Serve(w http.ResponseWriter, r *http.Request) error {
	var in addRequest
	if err := web.Decode(r, &in); err != nil {
		return err
	}
	if wrong := in.check(); len(wrong) > 0 {
		return problem.Invalid(wrong...)
	}
	ctx, guest, err := h.door.Admit(w, r, nil)
	if err != nil {
		return err
	}
	done := web.From(ctx).Phase("record")
	wish := wishlist.Wish{
		PropertyID: in.PropertyID, TenantID: in.TenantID, Source: in.Source, Note: in.Note, Refuses: !guest.Emits(),
	}
	change, err := h.room.Add(ctx, guest.ID, wish, guest.Events(ctx, event.WishlistAdded{
		GuestSessionID: guest.ID, TenantID: in.TenantID, PropertyID: in.PropertyID, Source: in.Source, AddedAt: guest.LastSeenAt,
	})...)
	done()
	if err != nil {
		return refused(ctx, h.door, guest, err)
	}
	leave(ctx, w, h.door, h.room, guest, change)
	status := http.StatusOK
	if change.Done {
		status = http.StatusCreated
	}
	return web.WriteJSON(w, status, added{change.Item, change.Size})
}

// leave ends a mutation: the session and the copy in one round trip, and the copy anew when others were faster.
func leave(ctx context.Context, w http.ResponseWriter, door *admission.Door, room *wishlist.Room, guest *admission.Guest, change *wishlist.Change) {
	left := door.Leave(ctx, w, guest, nil, func(pipe redis.Pipeliner) { room.Copy(ctx, pipe, guest.ID, change) })
	if left.Unsaved == nil {
		left.Unsaved = room.Mend(ctx, guest.ID, change)
	}
	if left.Unsaved != nil {
		web.From(ctx).Note("copy", "behind") // the next read repairs it
	}
}

// refused is what a guest is told of a mutation that did not happen.
func refused(ctx context.Context, door *admission.Door, guest *admission.Guest, err error) error {
	if errors.Is(err, wishlist.ErrFull) {
		return problem.New(problem.WishlistLimitExceeded, "Take something off the list first: it holds at most 100.", err)
	}
	return door.Refused(ctx, guest, postgres.Problem(err))
}
