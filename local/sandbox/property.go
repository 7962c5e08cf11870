package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

type detail struct {
	PropertyID  string    `json:"propertyId"`
	TenantID    string    `json:"tenantId"`
	TenantSlug  string    `json:"tenantSlug"`
	Name        localized `json:"name"`
	City        string    `json:"city"`
	Country     string    `json:"country"`
	Geo         geo.Point `json:"geo"`
	Address     string    `json:"address,omitzero"`
	Stars       int       `json:"starRating,omitzero"`
	Description string    `json:"description"`
	Rooms       []room    `json:"rooms"`
	Amenities   []amenity `json:"amenities"`
	Photos      []photo   `json:"photos"`
	Policies    policies  `json:"policies"`
}

type room struct {
	RoomTypeID   string  `json:"roomTypeId"`
	Name         string  `json:"name"`
	MaxOccupancy int     `json:"maxOccupancy"`
	Beds         string  `json:"beds,omitzero"`
	SizeSqm      int     `json:"sizeSqm,omitzero"`
	Photos       []image `json:"photos,omitzero"`
}

type amenity struct {
	Code     string `json:"code"`
	Label    string `json:"label"`
	Category string `json:"category,omitzero"`
}

type photo struct {
	URL    string `json:"url"`
	Alt    string `json:"alt"`
	IsHero bool   `json:"isHero"`
}

type policies struct {
	Cancellation string `json:"cancellation"`
	CheckIn      string `json:"checkIn"`
	CheckOut     string `json:"checkOut"`
}

func (s *Sandbox) propertyRoutes() http.Handler {
	mux := newMux()
	route(mux, "GET /api/v1/properties/{id}", s.property)
	return mux
}

// property responds with the description of a property in a locale.
func (s *Sandbox) property(r *http.Request) (any, error) {
	p := s.data.Property(r.PathValue("id"))
	if p == nil {
		return nil, notFound
	}
	locale := r.URL.Query().Get("locale")
	if locale == "" {
		return nil, badRequest("locale is missing")
	}
	name := propertyName(p, locale)
	d := detail{
		PropertyID: p.ID, TenantID: p.Tenant.ID, TenantSlug: p.Tenant.Slug,
		Name: newLocalized(p.Row.Name, p.Row.Names, locale),
		City: p.CityName, Country: p.Country, Geo: p.Row.Point,
		Address:     address(p),
		Stars:       p.Stars,
		Description: fmt.Sprintf(labels.Description.text(locale), name, labels.PropertyType[p.Row.Kind].text(locale), cityName(p, locale)),
		Rooms:       rooms(p, locale),
		Amenities:   []amenity{},
		Policies:    policiesOf(p, locale),
	}
	for _, code := range p.Amenities {
		known := labels.Amenities[code]
		d.Amenities = append(d.Amenities, amenity{code, known.Label.textOr(locale, code), known.Category})
	}
	for i := range 3 + p.Seed%4 {
		picture := "hero"
		if i > 0 {
			picture = fmt.Sprint(i)
		}
		d.Photos = append(d.Photos, photo{photoURL(p, picture), photoAlt(name, locale), i == 0})
	}
	return d, nil
}

func photoAlt(name, locale string) string { return fmt.Sprintf(labels.Photo.text(locale), name) }

// cityName returns the name of a property's city in a locale's language.
func cityName(p *dataset.Property, locale string) string {
	if p.City != nil && p.City.Names[primaryLanguage(locale)] != "" {
		return p.City.Names[primaryLanguage(locale)]
	}
	return p.CityName
}

// address joins the known parts of street, district and city.
func address(p *dataset.Property) string {
	parts := []string{p.Row.Street}
	if labels.Quarters[p.District] == nil { // a real district, not a direction such as "North"
		parts = append(parts, p.District)
	}
	parts = slices.DeleteFunc(append(parts, p.CityName), func(part string) bool { return part == "" })
	return strings.Join(parts, ", ")
}

// roomTypes lists the rooms by kind of property: code, guests, beds, square metres.
var roomTypes = map[string][]struct {
	code  string
	sleep int
	beds  string
	size  int
}{
	"hotel":      {{"double", 2, "1 double", 20}, {"twin", 2, "2 single", 20}, {"single", 1, "1 single", 13}, {"family", 4, "1 double, 2 single", 32}, {"suite", 3, "1 king, 1 sofa bed", 44}},
	"guesthouse": {{"double", 2, "1 double", 17}, {"twin", 2, "2 single", 17}, {"family", 5, "1 double, 3 single", 30}},
	"hostel":     {{"dormitory", 1, "1 bunk", 0}, {"twin", 2, "2 single", 12}, {"double", 2, "1 double", 12}},
	"motel":      {{"double", 2, "1 double", 18}, {"family", 4, "2 double", 26}},
	"apartment":  {{"apartment", 4, "1 double, 1 sofa bed", 52}, {"family", 6, "2 double, 2 single", 78}},
	"chalet":     {{"apartment", 6, "2 double, 2 single", 84}},
}

func rooms(p *dataset.Property, locale string) []room {
	types := roomTypes[p.Row.Kind]
	if p.Row.Kind == "hotel" && p.Stars < 4 {
		types = types[:4] // hotels below four stars have no suite
	}
	list := make([]room, len(types))
	for i, t := range types {
		list[i] = room{
			RoomTypeID:   "rmt_" + t.code,
			Name:         labels.Rooms[t.code].text(locale),
			MaxOccupancy: t.sleep,
			Beds:         t.beds,
			SizeSqm:      t.size,
			Photos:       []image{{photoURL(p, "room-"+t.code), labels.Rooms[t.code].text(locale)}},
		}
	}
	return list
}

func policiesOf(p *dataset.Property, locale string) policies {
	from := [...]string{"12:00", "13:00", "14:00", "15:00"}[p.Seed>>8%4]
	until := [...]string{"10:00", "11:00", "11:30", "12:00"}[p.Seed>>16%4]
	return policies{
		Cancellation: labels.Cancellation[p.Cancellation].text(locale),
		CheckIn:      fmt.Sprintf(labels.CheckIn.text(locale), from),
		CheckOut:     fmt.Sprintf(labels.CheckOut.text(locale), until),
	}
}
