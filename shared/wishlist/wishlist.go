// Package wishlist owns the guests' wishlists: the record in Postgres, and a copy in Redis for the
// time while Postgres is away. A mutation is a transaction in a single round trip to Postgres. The
// package never reads properties.
package wishlist

import "slices"

// MaxItems is the limit of properties on a wishlist.
const MaxItems = 100

// MaxNoteLength is the limit of a guest's note, in characters.
const MaxNoteLength = 280

// Sources are the places where a guest finds properties.
var Sources = []string{"detail", "list", "map", "recently-viewed"}

// Item is a property on a guest's wishlist. The copy in Redis holds items as the same JSON.
type Item struct {
	ID         string `json:"wishlistId"` // wsh_<ulid>; stays when a removed property is added again
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"` // as the client claims; not verified
	AddedAt    string `json:"addedAt"`  // unique and ascending within a session
	Source     string `json:"source"`
	Note       string `json:"note,omitzero"` // the guest's own words
}

// List is a snapshot of a wishlist, oldest item first.
type List struct {
	Items   []Item
	Removed []RemovedItem // removed within the retention of 30 days; empty in a list from the copy

	// version is the time of the last mutation, in Unix ms, computed from the rows; 0 for a list
	// without mutations. Every mutation has a later time than all earlier mutations, so versions
	// order the mutations.
	version int64
}

// RemovedItem is an item after its removal from the list.
type RemovedItem struct {
	Item
	RemovedAt string `json:"removedAt"`
}

// NewestFirst returns a copy of the items, newest first, as guests see the list, or nil for nil
// Items. CPU only.
func (l List) NewestFirst() []Item {
	items := slices.Clone(l.Items)
	slices.Reverse(items)
	return items
}
