package dataset

import (
	"cmp"
	"maps"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// builder builds a data set from rows.
type builder struct {
	*Dataset
	gazetteer *gazetteer
	words     []nameWord
	cities    map[string]*City   // by country and folded name
	regions   map[string]*Region // by country and folded name
	tenants   map[string]*Tenant // by brand, chain or row id; see tenantOf
	slugs     map[string]bool
}

// build returns the data set of rows, with all derived members. The order of rows does not matter.
// build is pure.
func build(known *gazetteer, rows []Row, report Report) *Dataset {
	b := builder{
		Dataset: &Dataset{
			Report:     report,
			properties: map[string]*Property{},
			tenants:    map[string]*Tenant{},
			countries:  map[string]*Country{},
			cityNames:  map[string][]*City{},
			areaNames:  map[string][]Area{},
			grid:       map[[2]int16][]int32{},
		},
		gazetteer: known,
		words:     loadNameParts().Words,
		cities:    map[string]*City{},
		regions:   map[string]*Region{},
		tenants:   map[string]*Tenant{},
		slugs:     map[string]bool{},
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Country, y.Country), cmp.Compare(Fold(x.City), Fold(y.City)), cmp.Compare(x.ID, y.ID))
	})
	for _, row := range rows {
		b.add(row)
	}
	b.finish()
	return b.Dataset
}

// add adds the property of a row.
func (b *builder) add(row Row) {
	s := seedOf("property", row.ID)
	p := &Property{
		ID:      s.ulid(id.Property),
		Row:     row,
		Country: row.Country,
		Seed:    s.draw("nights"),
	}
	country := b.countries[row.Country]
	if country == nil {
		country = &Country{Code: row.Country, Name: countryNames(row.Country)[0]}
		b.countries[row.Country] = country
		b.Countries = append(b.Countries, country)
	}
	country.Properties = append(country.Properties, p)
	b.assignPlace(p)
	if p.CityName == "" {
		p.CityName = country.Name
	}
	p.Tenant = b.tenantOf(p, s)
	p.Tenant.Properties = append(p.Tenant.Properties, p)
	p.derive(s)
	cell := gridCell(row.Point)
	b.grid[cell] = append(b.grid[cell], int32(len(b.Properties)))
	b.Properties = append(b.Properties, p)
	b.properties[p.ID] = p
}

// assignPlace sets the city and the region of a property: from the row, or from the gazetteer's
// nearest city within 40 km for the city and 60 km for the region.
func (b *builder) assignPlace(p *Property) {
	row := &p.Row
	p.CityName = row.City
	var known *gazetteerCity
	if row.City == "" {
		if known = b.gazetteer.nearest(row.Country, row.Point, 40); known != nil {
			p.CityName = known.City
		}
	} else {
		known = b.gazetteer.findCity(row.Country, row.City, row.Point)
	}
	if p.CityName != "" {
		p.City = b.cityOf(p, known)
		p.City.Properties = append(p.City.Properties, p)
	}
	region := row.Region
	if region == "" {
		if known == nil {
			known = b.gazetteer.nearest(row.Country, row.Point, 60)
		}
		if known != nil {
			region = known.Region
		}
	}
	if region != "" {
		p.Region = b.regionOf(row.Country, region)
		p.Region.Properties = append(p.Region.Properties, p)
	}
}

// cityOf returns the city of a property and adds a missing city.
func (b *builder) cityOf(p *Property, known *gazetteerCity) *City {
	key := p.Country + "\n" + Fold(p.CityName)
	if known != nil {
		key = p.Country + "\n" + Fold(known.City) // all spellings of a city share a key
	}
	city := b.cities[key]
	if city == nil {
		city = &City{Name: p.CityName, Country: p.Country}
		if known != nil {
			city.Names = maps.Clone(known.Names)
			city.Center = known.point()
			for _, name := range append([]string{known.City}, known.Aliases...) {
				b.indexCity(name, city)
			}
		}
		b.cities[key] = city
		b.Cities = append(b.Cities, city)
		b.indexCity(city.Name, city)
		for _, name := range city.Names {
			b.indexCity(name, city)
		}
	}
	b.indexCity(p.CityName, city)
	return city
}

// indexCity makes a city findable by a name.
func (b *builder) indexCity(name string, city *City) {
	key := Fold(name)
	if key != "" && !slices.Contains(b.cityNames[key], city) {
		b.cityNames[key] = append(b.cityNames[key], city)
	}
}

// regionOf returns a region by any of its names and adds a missing region.
func (b *builder) regionOf(country, name string) *Region {
	known := b.gazetteer.findRegion(country, name)
	if known != nil {
		name = known.Name
	}
	key := country + "\n" + Fold(name)
	region := b.regions[key]
	if region == nil {
		region = &Region{Name: name, Country: country}
		if known != nil {
			region.Names = maps.Clone(known.Names)
		}
		b.regions[key] = region
		b.Regions = append(b.Regions, region)
	}
	return region
}

// countryAliases are common names of countries that CLDR lacks.
var countryAliases = map[string][]string{
	"AE": {"UAE", "Emirates", "الإمارات", "امارات"},
	"SA": {"KSA", "السعودية", "سعودی"},
	"MA": {"Al Maghrib"},
}

// finish computes the members that depend on all properties: centres, radii and regions of cities,
// districts, and the name indices.
func (b *builder) finish() {
	for _, city := range b.Cities {
		if city.Center == (geo.Point{}) {
			for _, p := range city.Properties {
				city.Center.Lat += p.Row.Point.Lat / float64(len(city.Properties))
				city.Center.Lng += p.Row.Point.Lng / float64(len(city.Properties))
			}
		}
		for _, p := range city.Properties {
			city.RadiusKm = max(city.RadiusKm, geo.DistanceKm(city.Center, p.Row.Point))
			if city.Region == nil {
				city.Region = p.Region
			}
		}
		for _, p := range city.Properties {
			p.deriveDistrict(city)
		}
	}
	for _, found := range b.cityNames {
		slices.SortFunc(found, func(x, y *City) int {
			return cmp.Or(cmp.Compare(len(y.Properties), len(x.Properties)), cmp.Compare(x.Country, y.Country), cmp.Compare(x.Name, y.Name))
		})
	}
	for _, c := range b.Countries {
		names := append(countryNames(c.Code), c.Code)
		b.indexArea(Area{Country: c.Code, Name: c.Name, Properties: c.Properties}, append(names, countryAliases[c.Code]...))
	}
	// the larger region wins a name that two countries use
	slices.SortFunc(b.Regions, func(x, y *Region) int {
		return cmp.Or(cmp.Compare(len(y.Properties), len(x.Properties)), cmp.Compare(x.Country, y.Country), cmp.Compare(x.Name, y.Name))
	})
	for _, r := range b.Regions {
		names := append(slices.Collect(maps.Values(r.Names)), r.Name)
		if known := b.gazetteer.findRegion(r.Country, r.Name); known != nil {
			names = append(names, known.Aliases...)
		}
		b.indexArea(Area{Country: r.Country, Region: r.Name, Name: r.Name, Properties: r.Properties}, names)
	}
	for _, t := range b.tenants {
		b.Dataset.tenants[t.ID] = t
		b.Tenants = append(b.Tenants, t)
	}
	slices.SortFunc(b.Tenants, func(x, y *Tenant) int { return cmp.Compare(x.ID, y.ID) })
}

// indexArea makes an area findable by names. Areas indexed earlier win.
func (b *builder) indexArea(a Area, names []string) {
	for _, name := range names {
		key := Fold(name)
		taken := slices.ContainsFunc(b.areaNames[key], func(have Area) bool {
			return have.Country == a.Country && have.Region == a.Region
		})
		if key != "" && !taken {
			b.areaNames[key] = append(b.areaNames[key], a)
		}
	}
}
