package upstream

import (
	"context"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
)

// Property is the client of property-service: 1,000 ms per try, one retry, so at most 2,000 ms.
// Safe for concurrent use.
type Property struct{ c *client }

// PropertyDetail is the description of a property in the requested locale. Get has checked all
// values.
type PropertyDetail struct {
	PropertyID  string    `json:"propertyId"`
	TenantID    string    `json:"tenantId"`
	TenantSlug  string    `json:"tenantSlug"`
	Name        Localized `json:"name"`
	City        string    `json:"city"`
	Country     string    `json:"country"` // ISO 3166-1 alpha-2
	Geo         geo.Point `json:"geo"`
	Address     string    `json:"address,omitempty"`
	StarRating  float64   `json:"starRating,omitzero"` // 0: not rated
	Description string    `json:"description,omitempty"`
	Rooms       []Room    `json:"rooms"`
	Amenities   []Amenity `json:"amenities"`
	Photos      []Photo   `json:"photos"`
	Policies    Policies  `json:"policies"`
}

// Room is a room type.
type Room struct {
	RoomTypeID   string  `json:"roomTypeId"`
	Name         string  `json:"name"`
	MaxOccupancy int     `json:"maxOccupancy"`
	Beds         string  `json:"beds,omitempty"` // free text, "1 king or 2 twin"
	SizeSqm      float64 `json:"sizeSqm,omitzero"`
	Photos       []Image `json:"photos,omitempty"`
}

// Amenity is a feature of the property.
type Amenity struct {
	Code     string `json:"code"`
	Label    string `json:"label"`
	Category string `json:"category,omitempty"`
}

// Photo is a picture of the property. At most one photo is the hero.
type Photo struct {
	URL    string `json:"url"`
	Alt    string `json:"alt"`
	IsHero bool   `json:"isHero"`
}

// Policies are the policies of the property, as texts for the guest.
type Policies struct {
	Cancellation string `json:"cancellation"`
	CheckIn      string `json:"checkIn"`
	CheckOut     string `json:"checkOut"`
}

const (
	maxRooms     = 100
	maxPhotos    = 100
	maxOccupancy = 50
)

// Get returns a property in a locale: GET, within at most 2,000 ms including a retry. Bad optional
// values and bad or duplicate list elements are removed; lists are never nil. The error is
// ErrNotFound for an unknown property, or one of the package's rules: an *Error, or an error that
// wraps context.Canceled. A bad mandatory value, or another property than the requested, is an
// *Error of Reason BadResponse.
func (p *Property) Get(ctx context.Context, propertyID string, l locale.Tag) (PropertyDetail, error) {
	q := call{path: "/api/v1/properties/" + url.PathEscape(propertyID), query: url.Values{"locale": {string(l)}}}
	return fetch(ctx, p.c, q, func(d *PropertyDetail) error {
		if d.PropertyID != propertyID || !d.valid() {
			return errInvalidMandatory
		}
		return nil
	})
}

// valid reports whether the mandatory values of d are usable, and removes unusable optional values.
func (d *PropertyDetail) valid() bool {
	if !id.Valid(id.Property, d.PropertyID) || !id.Valid(id.Tenant, d.TenantID) || !validSlug(d.TenantSlug) ||
		!d.Name.valid() || !validText(d.City, maxName) || !validCountry(d.Country) || !d.Geo.Valid() {
		return false
	}
	p := &d.Policies
	if !validOptionalText(p.Cancellation, maxText) || !validOptionalText(p.CheckIn, maxText) || !validOptionalText(p.CheckOut, maxText) {
		return false
	}
	clearInvalid(&d.Address, maxText)
	clearInvalid(&d.Description, maxDescription)
	if !validStars(d.StarRating) {
		d.StarRating = 0
	}
	uniqueRoom := newUniqueFilter[string](len(d.Rooms))
	d.Rooms = filter(d.Rooms, func(r *Room) bool { return r.valid() && uniqueRoom(r.RoomTypeID) })
	d.Rooms = d.Rooms[:min(len(d.Rooms), maxRooms)]
	uniqueAmenity := newUniqueFilter[string](len(d.Amenities))
	d.Amenities = filter(d.Amenities, func(a *Amenity) bool {
		if !validCode(a.Category) {
			a.Category = ""
		}
		return validCode(a.Code) && validText(a.Label, maxName) && uniqueAmenity(a.Code)
	})
	heroes := 0
	d.Photos = filter(d.Photos, func(p *Photo) bool {
		clearInvalid(&p.Alt, maxText)
		if !validURL(p.URL) {
			return false
		}
		if p.IsHero {
			heroes++
			p.IsHero = heroes == 1
		}
		return true
	})
	d.Photos = d.Photos[:min(len(d.Photos), maxPhotos)]
	return true
}

// valid reports whether the mandatory values of r are usable, and removes unusable optional values.
func (r *Room) valid() bool {
	clearInvalid(&r.Beds, maxName)
	if !(r.SizeSqm > 0 && r.SizeSqm < 10_000) {
		r.SizeSqm = 0
	}
	r.Photos = filter(r.Photos, (*Image).valid)
	r.Photos = r.Photos[:min(len(r.Photos), maxPhotos)]
	return validCode(r.RoomTypeID) && validText(r.Name, maxName) && r.MaxOccupancy > 0 && r.MaxOccupancy <= maxOccupancy
}
