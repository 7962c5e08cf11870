package invalidate

import (
	"context"
	"errors"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectListingIndexed = "melmastoon.search_aggregation.listing.indexed.v1"

// listingIndexed is the used part of the payload.
type listingIndexed struct {
	PropertyID string `json:"propertyId"`
	GeoCell    string `json:"geoCell"`
}

// listingIndexed invalidates the cache entries with the tag of the property, and all result pages
// near the property: pages without a known area, and pages of the property's cell and of each
// ancestor cell. A page without the property is invalidated too: the property may belong there now.
// The tags cost the round trips of a cache.Invalidate.
func (p *handlers) listingIndexed() web.Handler {
	return p.receive(subjectListingIndexed, func(payload []byte) (inbox.Effect, error) {
		e, err := decodePayload[listingIndexed](payload)
		if err != nil {
			return inbox.Effect{}, err
		}
		cell, err := geo.ParseCell(e.GeoCell)
		if err != nil {
			return inbox.Effect{}, errors.New("the event is invalid: payload.geoCell: not a cell of the H3 grid")
		}
		tags := []string{cache.PropertyTag(e.PropertyID), cache.UnknownAreaTag}
		for _, ancestor := range cell.Ancestors() {
			tags = append(tags, cache.CellTag(ancestor.String()))
		}
		return inbox.Effect{AfterCommit: func(ctx context.Context) (int, error) { return p.cache.Invalidate(ctx, tags...) }}, nil
	})
}
