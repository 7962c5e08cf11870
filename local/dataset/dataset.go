// Package dataset owns the accommodations of the sandbox upstreams. Rows come from a file of real
// accommodations or from the embedded data set of invented accommodations. Members that a row lacks
// (owner, brand, price, rating, rooms, amenities) are derived from the row's id. The package uses
// no clock and no random source: the same rows give the same data set in every run.
package dataset

import (
	"cmp"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Dataset holds all data of the sandbox, in memory. It is immutable and safe for concurrent use.
// Callers must not change the returned slices and pointers.
type Dataset struct {
	Properties []*Property // by country, city, then row id
	Cities     []*City
	Regions    []*Region
	Countries  []*Country
	Tenants    []*Tenant
	Report     Report

	properties map[string]*Property
	tenants    map[string]*Tenant
	countries  map[string]*Country
	cityNames  map[string][]*City   // by folded name in any language; largest city first
	areaNames  map[string][]Area    // by folded name of a region or country; countries first
	grid       map[[2]int16][]int32 // by cell of a quarter degree; indices into Properties
}

// Property is an accommodation.
type Property struct {
	ID       string // ppt_<ulid>
	Row      Row    // members from the source; all other members are derived
	Tenant   *Tenant
	Country  string  // ISO 3166-1 alpha-2
	City     *City   // nil if the row names no city and no known city is within 40 km
	CityName string  // in the row's spelling; the country's name without a city
	Region   *Region // nil if unknown
	District string

	Stars         int      // 1 to 5; 0 without stars
	Rating        int      // in tenths, 0 to 100; 0 without a rating
	Reviews       int      // number of reviews behind Rating
	Rooms         int      // number of rooms
	Amenities     []string // codes; amenities of the row first
	Badges        []string // shariaCompliant, newProperty
	Cancellation  string   // free, partial or none
	NightMicroUSD int64    // base price of a room for two per night, in millionths of a US dollar
	ServingRegion string   // cloud region of the tenant
	BookedLastDay int
	ViewedLastHr  int
	Recommended   int    // score of the sort "recommended"; highest first
	Seed          uint64 // source of the values that differ by night
}

// Tenant is an owner of properties.
type Tenant struct {
	ID            string // tnt_<ulid>
	Slug          string // a DNS label, unique
	Brand         Text
	Color         string // #rrggbb
	LogoURL       string
	ServingRegion string
	Properties    []*Property
}

// Text is a name with its translations.
type Text struct {
	Default   string            // in the local language
	Localized map[string]string // by BCP-47 tag
}

// City is a town with properties.
type City struct {
	Name       string
	Country    string
	Region     *Region           // nil if unknown
	Names      map[string]string // by language
	Center     geo.Point
	RadiusKm   float64 // distance from Center to the farthest property
	Properties []*Property
}

// Region is a first-level division of a country, such as a province.
type Region struct {
	Name       string
	Country    string
	Names      map[string]string
	Properties []*Property
}

// Country is a country with properties.
type Country struct {
	Code       string // ISO 3166-1 alpha-2
	Name       string // in English
	Properties []*Property
}

// Area is a region or a whole country.
type Area struct {
	Country    string
	Region     string // "" for a country
	Name       string
	Properties []*Property
}

// Property returns the property with an id, or nil.
func (d *Dataset) Property(id string) *Property { return d.properties[id] }

// Tenant returns the tenant with an id, or nil.
func (d *Dataset) Tenant(id string) *Tenant { return d.tenants[id] }

// Country returns the country with a code, or nil for a country without properties.
func (d *Dataset) Country(code string) *Country { return d.countries[code] }

// City finds a city by its name in any known language; see Fold for the comparison. Of several
// cities with the name, City returns the city with the most properties, unless a country or region
// follows the name: "Hyderabad, Pakistan". It returns nil for an unknown city.
func (d *Dataset) City(text string) *City {
	if found := d.cityNames[Fold(text)]; len(found) > 0 {
		return found[0]
	}
	name, rest, ok := cutPlace(text)
	if !ok {
		return nil
	}
	areas := d.areaNames[Fold(rest)]
	for _, city := range d.cityNames[Fold(name)] {
		for _, a := range areas {
			if a.Country == city.Country && (a.Region == "" || city.Region != nil && city.Region.Name == a.Region) {
				return city
			}
		}
	}
	return nil
}

// Area finds a country by code or name, or a region by name, in any known language. A country or
// region may follow the name, as in City. ok is false for an unknown name.
func (d *Dataset) Area(text string) (Area, bool) {
	found := d.areaNames[Fold(text)]
	if len(found) == 0 {
		name, rest, ok := cutPlace(text)
		if !ok {
			return Area{}, false
		}
		for _, a := range d.areaNames[Fold(name)] {
			for _, within := range d.areaNames[Fold(rest)] {
				if within.Country == a.Country {
					return a, true
				}
			}
		}
		return Area{}, false
	}
	return found[0], true
}

// RegionOf finds a region of a country by name, or else a city of the country, because guests also
// write a city where a region is asked for. ok is false for an unknown name.
func (d *Dataset) RegionOf(country, text string) (name string, properties []*Property, ok bool) {
	for _, a := range d.areaNames[Fold(text)] {
		if a.Country == country && a.Region != "" {
			return a.Region, a.Properties, true
		}
	}
	for _, c := range d.cityNames[Fold(text)] {
		if c.Country == country {
			return c.Name, c.Properties, true
		}
	}
	return "", nil, false
}

// gridCell returns the cell of a point: the latitude and longitude in quarter degrees, rounded
// down.
func gridCell(p geo.Point) [2]int16 { return [2]int16{quarterDegrees(p.Lat), quarterDegrees(p.Lng)} }

func quarterDegrees(deg float64) int16 {
	n := int16(deg * 4)
	if float64(n) > deg*4 {
		n--
	}
	return n
}

// Within returns the properties inside a box, in the order of Properties. The box may cross the
// antimeridian.
func (d *Dataset) Within(box geo.Box) []*Property {
	var hits []int32
	take := func(indices []int32) {
		for _, i := range indices {
			if box.Contains(d.Properties[i].Row.Point) {
				hits = append(hits, i)
			}
		}
	}
	south, north, west, east := quarterDegrees(box.SwLat), quarterDegrees(box.NeLat), quarterDegrees(box.SwLng), quarterDegrees(box.NeLng)
	wide := (int(north) - int(south) + 1) * (int(east) - int(west) + 1)
	if west > east || wide > len(d.grid) || box.SwLng == -180 || box.NeLng == 180 {
		// The box crosses the antimeridian, or has more cells than the grid: visit every cell.
		for _, indices := range d.grid {
			take(indices)
		}
	} else {
		for lat := south; lat <= north; lat++ {
			for lng := west; lng <= east; lng++ {
				take(d.grid[[2]int16{lat, lng}])
			}
		}
	}
	slices.Sort(hits)
	found := make([]*Property, len(hits))
	for i, index := range hits {
		found[i] = d.Properties[index]
	}
	return found
}

// Near returns the properties within km of a point, nearest first.
func (d *Dataset) Near(center geo.Point, km float64) []*Property {
	type near struct {
		*Property
		km float64
	}
	var found []near
	for _, p := range d.Within(boundingBox(center, km)) {
		if away := geo.DistanceKm(center, p.Row.Point); away <= km {
			found = append(found, near{p, away})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.km, b.km) })
	all := make([]*Property, len(found))
	for i, n := range found {
		all[i] = n.Property
	}
	return all
}
