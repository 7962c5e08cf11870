package wishlist

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Add answers POST /wishlist.
type Add struct {
	guests *guest.Controller
	store  *wishlist.Store
}

// NewAdd makes the handler.
func NewAdd(p *wiring.Deps, room *wishlist.Store) *Add { return &Add{p.Guests, room} }

type addRequest struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"`
	Source     string `json:"source"`
	Note       string `json:"note"`
}

func (in *addRequest) check() (wrong problem.FieldErrors) {
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
	if field := web.ValidateText("note", in.Note, wishlist.MaxNoteLength); field != nil {
		wrong = append(wrong, *field)
	}
	return wrong
}

type addResponse struct {
	Item wishlist.Item `json:"item"`
	Size int           `json:"size"`
}

// Serve puts a property on the list: 201 when it is new there, 200 when it was there.
func (h *Add) Serve(w http.ResponseWriter, r *http.Request) error {
	var in addRequest
	if err := web.Decode(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	if wrong := in.check(); len(wrong) > 0 {
		return h.guests.CountRejected(w, r, problem.Invalid(wrong...))
	}
	ctx, guest, err := h.guests.Begin(w, r, nil)
	if err != nil {
		return err
	}
	done := web.FromContext(ctx).Phase("record")
	wish := wishlist.AddRequest{
		PropertyID: in.PropertyID, TenantID: in.TenantID, Source: in.Source, Note: in.Note, OptedOut: !guest.AllowsEvents(),
	}
	change, err := h.store.Add(ctx, guest.ID, wish, guest.Events(ctx, event.WishlistAdded{
		GuestSessionID: guest.ID, TenantID: in.TenantID, PropertyID: in.PropertyID, Source: in.Source, AddedAt: guest.LastSeenAt,
	})...)
	done()
	if err != nil {
		return mutationProblem(ctx, h.guests, guest, err)
	}
	finishMutation(ctx, w, h.guests, h.store, guest, change)
	status := http.StatusOK
	if change.Applied {
		status = http.StatusCreated
	}
	return web.WriteJSON(w, status, addResponse{change.Item, change.Size})
}

// finishMutation ends a mutation: the session and the copy in one round trip, and the copy anew when others were faster.
func finishMutation(ctx context.Context, w http.ResponseWriter, door *guest.Controller, room *wishlist.Store, guest *guest.Guest, change *wishlist.Change) {
	left := door.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { room.EnqueueCopy(ctx, pipe, guest.ID, change) })
	if left.SaveErr == nil {
		left.SaveErr = room.RebuildCopy(ctx, guest.ID, change)
	}
	if left.SaveErr != nil {
		web.FromContext(ctx).AddLogField("copy", "behind") // the next read repairs it
	}
}

// mutationProblem is what a guest is told of a mutation that did not happen.
func mutationProblem(ctx context.Context, door *guest.Controller, guest *guest.Guest, err error) error {
	if errors.Is(err, wishlist.ErrFull) {
		return problem.New(problem.WishlistLimitExceeded, "Take something off the list first: it holds at most 100.", err)
	}
	return door.HandleCleared(ctx, guest, postgres.Problem(err))
}
