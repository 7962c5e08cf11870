package upstream

import (
	"context"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
)

// Property is property-service: 1,000 ms a try, one retry.
type Property struct{ c *client }

// PropertyDetail is a property's own description, in the locale asked for.
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

// Room is a type of room.
type Room struct {
	RoomTypeID   string  `json:"roomTypeId"`
	Name         string  `json:"name"`
	MaxOccupancy int     `json:"maxOccupancy"`
	Beds         string  `json:"beds,omitempty"` // as the property words it, "1 king or 2 twin"
	SizeSqm      float64 `json:"sizeSqm,omitzero"`
	Photos       []Image `json:"photos,omitempty"`
}

// Amenity is something the property has.
type Amenity struct {
	Code     string `json:"code"`
	Label    string `json:"label"`
	Category string `json:"category,omitempty"`
}

// Photo is a picture of the property; one of them is the hero.
type Photo struct {
	URL    string `json:"url"`
	Alt    string `json:"alt"`
	IsHero bool   `json:"isHero"`
}

// Policies of the house, as texts for the guest.
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

// Get reads one property. ErrNotFound when property-service does not know it; otherwise fails as *Error.
func (p *Property) Get(ctx context.Context, propertyID string, l locale.Tag) (PropertyDetail, error) {
	q := call{path: "/api/v1/properties/" + url.PathEscape(propertyID), query: url.Values{"locale": {string(l)}}}
	return fetch(ctx, p.c, q, func(d *PropertyDetail) error {
		if d.PropertyID != propertyID || !d.valid() {
			return errInvalidMandatory
		}
		return nil
	})
}

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
	firstRoom := newUniqueFilter[string](len(d.Rooms))
	d.Rooms = filter(d.Rooms, func(r *Room) bool { return r.valid() && firstRoom(r.RoomTypeID) })
	d.Rooms = d.Rooms[:min(len(d.Rooms), maxRooms)]
	firstAmenity := newUniqueFilter[string](len(d.Amenities))
	d.Amenities = filter(d.Amenities, func(a *Amenity) bool {
		if !validCode(a.Category) {
			a.Category = ""
		}
		return validCode(a.Code) && validText(a.Label, maxName) && firstAmenity(a.Code)
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

func (r *Room) valid() bool {
	clearInvalid(&r.Beds, maxName)
	if !(r.SizeSqm > 0 && r.SizeSqm < 10_000) {
		r.SizeSqm = 0
	}
	r.Photos = filter(r.Photos, (*Image).valid)
	r.Photos = r.Photos[:min(len(r.Photos), maxPhotos)]
	return validCode(r.RoomTypeID) && validText(r.Name, maxName) && r.MaxOccupancy > 0 && r.MaxOccupancy <= maxOccupancy
}
