// Package dataset owns the places to stay that the sandbox upstreams know: read from a file of real ones or invented
// by us, with all that a row does not say (owner, brand, price, rating, rooms, amenities) derived from the row's id.
// It never calls a clock or a random source: the same rows give the same data set in every run.
package dataset

import (
	"cmp"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Dataset is everything the sandbox knows. It does not change after it was built and is safe for concurrent use.
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
	cityNames  map[string][]*City   // folded name in any language → largest first
	areaNames  map[string][]Area    // folded name of a region or country → countries first
	grid       map[[2]int16][]int32 // quarter degree → indices into Properties
}

// Property is one place to stay.
type Property struct {
	ID       string // ppt_<ulid>
	Row      Row    // what the source says; the rest is derived
	Tenant   *Tenant
	Country  string  // ISO 3166-1 alpha-2
	City     *City   // nil: the row names no city and is near none we know
	CityName string  // as the row spells it; the country's name when there is no city
	Region   *Region // nil: not known
	District string

	Stars         int      // 0: has none
	Rating        int      // tenths of 0..10; 0: not rated yet
	Reviews       int      // how many guests gave the rating
	Rooms         int      // how many it has
	Amenities     []string // codes; those of the row first
	Badges        []string // shariaCompliant, newProperty
	Cancellation  string   // free, partial, none
	NightMicroUSD int64    // what a room for two costs on an ordinary night, in millionths of a US dollar
	ServingRegion string   // cloud region of its tenant
	BookedLastDay int
	ViewedLastHr  int
	Recommended   int    // rank of the sort "recommended": higher first
	Seed          uint64 // for what differs by night
}

// Tenant owns properties.
type Tenant struct {
	ID            string // tnt_<ulid>
	Slug          string // a DNS label, unique
	Brand         Text
	Color         string // #rrggbb
	LogoURL       string
	ServingRegion string
	Properties    []*Property
}

// Text is a name in its own language and in others, by BCP-47 tag.
type Text struct {
	Default   string
	Localized map[string]string
}

// City is a town with places to stay.
type City struct {
	Name       string
	Country    string
	Region     *Region // nil: not known
	Names      map[string]string
	Center     geo.Point
	RadiusKm   float64 // reaches all its properties
	Properties []*Property
}

// Region is a province, or whatever the country calls its first division.
type Region struct {
	Name       string
	Country    string
	Names      map[string]string
	Properties []*Property
}

// Country is a country with places to stay.
type Country struct {
	Code       string // ISO 3166-1 alpha-2
	Name       string // in English
	Properties []*Property
}

// Area is what a guest means by a region: a region, or a whole country.
type Area struct {
	Country    string
	Region     string // "" for a country
	Name       string
	Properties []*Property
}

// Property finds a property by its id; nil when there is none.
func (d *Dataset) Property(id string) *Property { return d.properties[id] }

// Tenant finds a tenant by its id; nil when there is none.
func (d *Dataset) Tenant(id string) *Tenant { return d.tenants[id] }

// Country finds a country by its code; nil when it has no place to stay.
func (d *Dataset) Country(code string) *Country { return d.countries[code] }

// City finds a city by its name in any known language, without regard to case and accents. Of several it is the one
// with the most places to stay, unless the text goes on with a country or region: "Hyderabad, Pakistan".
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

// Area finds a country by code or name, or a region by name, in any known language.
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

// RegionOf finds a region of one country, or, because guests say so, a city of it.
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

// gridCell is the grid's quarter of a degree.
func gridCell(p geo.Point) [2]int16 { return [2]int16{quarterDegrees(p.Lat), quarterDegrees(p.Lng)} }

func quarterDegrees(deg float64) int16 {
	n := int16(deg * 4)
	if float64(n) > deg*4 {
		n--
	}
	return n
}

// Within returns the properties inside the box, in the order of Properties.
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
		// Over the antimeridian, or larger than what is occupied: look at every cell there is.
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

// Near returns the properties at most km away, nearest first.
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
