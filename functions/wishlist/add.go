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
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Add handles POST /wishlist. Safe for concurrent use.
type Add struct {
	guests *guest.Controller
	store  *wishlist.Store
}

type addRequest struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"`
	Source     string `json:"source"`
	Note       string `json:"note"`
}

// check returns all faults of the request.
func (in *addRequest) check() (faults problem.FieldErrors) {
	switch {
	case in.PropertyID == "":
		faults.Add("propertyId", "required", "A property id is required.")
	case !id.Valid(id.Property, in.PropertyID):
		faults.Add("propertyId", "malformed", "Must be the id of a property, ppt_….")
	}
	switch {
	case in.TenantID == "":
		faults.Add("tenantId", "required", "A tenant id is required.")
	case !id.Valid(id.Tenant, in.TenantID):
		faults.Add("tenantId", "malformed", "Must be the id of a tenant, tnt_….")
	}
	sources := "Must be one of " + strings.Join(wishlist.Sources, ", ") + "."
	switch {
	case in.Source == "":
		faults.Add("source", "required", sources)
	case !slices.Contains(wishlist.Sources, in.Source):
		faults.Add("source", "not-supported", sources)
	}
	if field := web.ValidateText("note", in.Note, wishlist.MaxNoteLength); field != nil {
		faults = append(faults, *field)
	}
	return faults
}

type addResponse struct {
	Item wishlist.Item `json:"item"`
	Size int           `json:"size"`
}

// Serve answers POST /wishlist: 201 for a new entry of the list and 200 for an existing entry,
// which stays unchanged. The answer is personal (private, no-store). web.Budget bounds the request
// to 2.5 s.
//
// The cost is two Redis round trips of at most 100 ms each and a Postgres round trip of at most 1.5
// s, which writes the row and the event and continues when the client hangs up. Changes of one
// session's list wait for each other in Postgres. An existing entry or a full list costs a second
// Postgres round trip. A new session adds a write of its events, of at most 300 ms. When the copy
// in Redis does not fit the change (concurrent additions, or a lost copy), another Postgres read
// and Redis write rebuild the copy. All of Postgres ends 250 ms before the request's budget.
//
// Without Postgres the answer is 503, and the entry is stored only if the reply to the commit was
// lost; a repetition is harmless. Without Redis the entry is stored, and the next read of the list
// repairs the copy. An invalid request or a list of 100 entries is 422; a session cleared meanwhile
// is a retriable 503, after up to 1.5 s for the rest of the erasure.
func (h *Add) Serve(w http.ResponseWriter, r *http.Request) error {
	var in addRequest
	if err := web.Decode(r, &in); err != nil {
		return h.guests.CountRejected(w, r, err)
	}
	if faults := in.check(); len(faults) > 0 {
		return h.guests.CountRejected(w, r, problem.Invalid(faults...))
	}
	ctx, guest, err := h.guests.Begin(w, r, nil)
	if err != nil {
		return err
	}
	done := web.FromContext(ctx).Phase("record")
	request := wishlist.AddRequest{
		PropertyID: in.PropertyID, TenantID: in.TenantID, Source: in.Source, Note: in.Note, OptedOut: !guest.AllowsEvents(),
	}
	change, err := h.store.Add(ctx, guest.ID, request, guest.Events(ctx, event.WishlistAdded{
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

// finishMutation saves the session and the copy of the list in a Redis round trip, and rebuilds a
// copy that did not fit the change. A failure is logged only: the row in Postgres is committed.
func finishMutation(ctx context.Context, w http.ResponseWriter, guests *guest.Controller, store *wishlist.Store, guest *guest.Guest, change *wishlist.Change) {
	result := guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { store.EnqueueCopy(ctx, pipe, guest.ID, change) })
	err := result.SaveErr
	if err == nil {
		err = store.RebuildCopy(ctx, guest.ID, change)
	}
	if err != nil {
		web.FromContext(ctx).AddLogField("copy", "behind") // the next read repairs the copy
	}
}

// mutationProblem returns the problem of a mutation that Postgres refused or did not take: 422 for
// a full list, 503 without Postgres, and a retriable problem for a session that was cleared
// meanwhile.
func mutationProblem(ctx context.Context, guests *guest.Controller, guest *guest.Guest, err error) error {
	if errors.Is(err, wishlist.ErrFull) {
		return problem.New(problem.WishlistLimitExceeded, "Take something off the list first: it holds at most 100.", err)
	}
	return guests.HandleCleared(ctx, guest, postgres.Problem(err))
}
