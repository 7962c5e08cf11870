package dataset

import (
	"math"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// derive sets the members that the row lacks, except District. The values depend on the row and its
// tenant only.
func (p *Property) derive(s seed) {
	row := &p.Row
	p.Stars = row.Stars
	if p.Stars == 0 && row.Kind == "hotel" && s.chance("has stars", 70) {
		p.Stars = []int{2, 3, 3, 3, 4, 4, 5}[s.pick("stars", 7)]
	}
	p.Rooms = row.Rooms
	if p.Rooms == 0 {
		size := map[string][2]int{"hotel": {18, 140}, "hostel": {6, 30}, "guesthouse": {5, 18}, "motel": {12, 40}, "apartment": {3, 24}, "chalet": {2, 8}}[row.Kind]
		p.Rooms = s.between("rooms", size[0], size[1])
	}
	if s.chance("unrated", 7) {
		p.Badges = append(p.Badges, "newProperty")
	} else {
		p.Rating = 57 + 3*p.Stars + s.pick("rating", 20) + s.pick("rating again", 8)
		p.Reviews = 3 + int(math.Pow(float64(s.pick("reviews", 1000))/1000, 3)*2400)
	}
	p.Cancellation = []string{"free", "free", "free", "partial", "partial", "none"}[s.pick("cancellation", 6)]
	sharia := s.chance("sharia", profileOf(row.Country).sharia)
	if sharia {
		p.Badges = append([]string{"shariaCompliant"}, p.Badges...)
	}
	p.Amenities = p.deriveAmenities(s, sharia)
	p.NightMicroUSD = p.nightPrice(s)
	p.ServingRegion = p.Tenant.ServingRegion
	p.BookedLastDay = s.pick("booked", 2+p.Rooms/6)
	p.ViewedLastHr = s.pick("viewed", 5+p.Rooms/3)
	rating := p.Rating
	if rating == 0 {
		rating = 74 // a middle rank for properties without a rating
	}
	p.Recommended = rating*1000 + min(p.Reviews, 600)*10 + s.pick("recommended", 9000)
}

// deriveDistrict sets the district: of the row, or else the direction from the city's centre.
func (p *Property) deriveDistrict(city *City) {
	p.District = p.Row.District
	if p.District != "" {
		return
	}
	away := geo.DistanceKm(city.Center, p.Row.Point)
	if away < 1 || away < city.RadiusKm/8 {
		p.District = "Centre"
		return
	}
	dLat := p.Row.Point.Lat - city.Center.Lat
	dLng := (p.Row.Point.Lng - city.Center.Lng) * math.Cos(city.Center.Lat*math.Pi/180)
	switch {
	case math.Abs(dLat) >= math.Abs(dLng) && dLat > 0:
		p.District = "North"
	case math.Abs(dLat) >= math.Abs(dLng):
		p.District = "South"
	case dLng > 0:
		p.District = "East"
	default:
		p.District = "West"
	}
}

// countryProfile holds the parameters of derived values by country.
type countryProfile struct {
	price     int    // of a night, in percent of the average
	sharia    int    // sharia-compliant properties, in percent
	muslim    bool   // halal kitchens and prayer rooms are common
	powerCuts bool   // backup power is common
	region    string // cloud region of the country's tenants
}

var countryProfiles = map[string]countryProfile{
	"AF": {70, 40, true, true, "asia-south1"},
	"IR": {60, 35, true, false, "me-central1"},
	"PK": {62, 35, true, true, "asia-south1"},
	"TJ": {72, 15, true, true, "asia-south1"},
	"UZ": {70, 12, true, false, "asia-south1"},
	"AE": {150, 25, true, false, "me-central1"},
	"SA": {125, 45, true, false, "me-central2"},
	"QA": {160, 28, true, false, "me-central1"},
	"OM": {110, 25, true, false, "me-central1"},
	"KW": {140, 28, true, false, "me-central2"},
	"BH": {120, 20, true, false, "me-central2"},
	"IQ": {80, 30, true, true, "me-central2"},
	"TR": {95, 14, true, false, "europe-west1"},
	"MA": {82, 14, true, false, "europe-southwest1"},
	"NP": {50, 2, false, true, "asia-south1"},
	"IN": {58, 4, false, true, "asia-south1"},
	"AD": {115, 0, false, false, "europe-southwest1"},
	"MC": {260, 0, false, false, "europe-west1"},
	"LI": {190, 0, false, false, "europe-west1"},
}

// profileOf returns the profile of a country, or a default.
func profileOf(country string) countryProfile {
	if c, ok := countryProfiles[country]; ok {
		return c
	}
	return countryProfile{price: 100, region: "europe-west1"}
}

// nightPrice returns the base price of a room for two per night, in millionths of a US dollar.
func (p *Property) nightPrice(s seed) int64 {
	dollars := map[string]int64{"hotel": 42, "hostel": 14, "guesthouse": 27, "motel": 31, "apartment": 55, "chalet": 88}[p.Row.Kind]
	if p.Row.Kind == "hotel" {
		dollars = [...]int64{42, 28, 36, 55, 92, 178}[p.Stars]
	}
	spread := int64(740 + s.pick("price", 720)) // thousandths
	return dollars * 1000 * spread * int64(profileOf(p.Country).price) / 100
}

// deriveAmenities returns the amenities of the row, then amenities with a probability by kind,
// stars and country.
func (p *Property) deriveAmenities(s seed, sharia bool) []string {
	c := profileOf(p.Country)
	if1 := func(yes bool, percent, otherwise int) int {
		if yes {
			return percent
		}
		return otherwise
	}
	homely := p.Row.Kind == "apartment" || p.Row.Kind == "chalet" || p.Row.Kind == "hostel"
	likely := []struct {
		code    string
		percent int
	}{
		{"wifi", 86},
		{"breakfast", if1(p.Row.Kind == "apartment", 10, 62)},
		{"halal-kitchen", if1(sharia, 100, if1(c.muslim, 55, 6))},
		{"prayer-room", if1(sharia, 100, if1(c.muslim, 42, 2))},
		{"parking", 52},
		{"air-conditioning", if1(p.Row.Kind == "hostel", 35, 50+8*p.Stars)},
		{"restaurant", if1(homely, 12, 30+12*p.Stars)},
		{"airport-shuttle", 12 + 11*p.Stars},
		{"family-rooms", 46},
		{"women-only-area", if1(sharia, 45, if1(c.muslim, 12, 4))},
		{"backup-power", if1(c.powerCuts, 66, 3)},
		{"kitchen", if1(homely, 78, 4)},
		{"pool", if1(p.Stars > 2, 14*p.Stars, 3)},
		{"gym", if1(p.Stars > 2, 13*p.Stars, 2)},
		{"spa", if1(p.Stars > 3, 12*p.Stars, 1)},
		{"laundry", 40},
		{"garden", 26},
		{"non-smoking", 55},
		{"wheelchair", 12 + 7*p.Stars},
	}
	all := slices.Clone(p.Row.Amenities)
	for _, l := range likely {
		if s.chance("has "+l.code, l.percent) && !slices.Contains(all, l.code) {
			all = append(all, l.code)
		}
	}
	return all
}
