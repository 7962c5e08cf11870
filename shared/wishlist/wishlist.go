// Package wishlist owns what a guest wants to remember: the record in Postgres, where each mutation is one transaction
// in one round trip, and its copy in Redis, which serves while Postgres is away. It never looks at what a property is.
package wishlist

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxItems is how many properties a wishlist holds.
const MaxItems = 100

// MaxNoteLength is how many characters a guest's note may have.
const MaxNoteLength = 280

// Sources are where a guest may have found what goes on the list.
var Sources = []string{"detail", "list", "map", "recently-viewed"}

// Item is one property on a guest's wishlist. Its JSON is also what the copy in Redis holds.
type Item struct {
	ID         string `json:"wishlistId"` // wsh_<ulid>; stays when a removed property is added again
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"` // as the client named it; no authority
	AddedAt    string `json:"addedAt"`  // two of one session never have the same
	Source     string `json:"source"`
	Note       string `json:"note,omitzero"` // the guest's own words
}

// List is a wishlist at one moment, oldest first.
type List struct {
	Items   []Item
	Removed []RemovedItem // what was taken off and is not forgotten yet; a copy has none

	// version grows with every mutation: the time of the last, Unix ms, which is later than that of all before;
	// 0 when nothing was ever added. It can be had from the rows alone.
	version int64
}

// RemovedItem is an item that was taken off the list.
type RemovedItem struct {
	Item
	RemovedAt string `json:"removedAt"`
}

// NewestFirst is the items, newest first, as guests see them.
func (l List) NewestFirst() []Item {
	items := slices.Clone(l.Items)
	slices.Reverse(items)
	return items
}

// encodeItem is an item as the copy holds it: the same bytes for the same item.
func encodeItem(i Item) string {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // unreachable: strings that were checked
	}
	return string(b)
}

// DecodeCopy reads a copy.
func DecodeCopy(entries []jsontext.Value) (List, error) {
	var l List
	for _, entry := range entries {
		var i Item
		if err := json.Unmarshal(entry, &i); err != nil {
			return List{}, err
		}
		l.Items = append(l.Items, i)
	}
	return l, nil
}
