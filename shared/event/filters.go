package event

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// Filters names the filters that a search used. It holds words of the platform only, because
// nothing but FilterKeys and the JSON decoder sets it. Its JSON is an array of strings.
type Filters struct{ keys []string }

// FilterKeys returns the codes of amenities and the names of other filters ("priceRange",
// "neighbourhoods"), sorted, without duplicates. An unknown amenity becomes "amenities", because it
// could be text that a guest typed. An unknown name is left out.
func FilterKeys(amenities []string, names ...string) Filters {
	used := map[string]bool{}
	for _, code := range amenities {
		if !amenityCodes[code] {
			code = "amenities"
		}
		used[code] = true
	}
	for _, name := range names {
		if filterNames[name] {
			used[name] = true
		}
	}
	return Filters{slices.Sorted(maps.Keys(used))}
}

// Keys returns a copy of the filters, sorted.
func (f Filters) Keys() []string { return slices.Clone(f.keys) }

// MarshalJSON encodes an array, [] without filters.
func (f Filters) MarshalJSON() ([]byte, error) { return json.Marshal(f.keys) }

// UnmarshalJSON decodes an array of strings. It accepts unknown words, which newer code may have
// written.
func (f *Filters) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &f.keys) }

var filterNames = set(
	"amenities", "cancellationFlexibility", "guestRatingMin", "neighbourhoods", "priceRange", "propertyType",
	"starRating",
)

var amenityCodes = set(
	"accessible", "air-conditioning", "airport-shuttle", "bar", "breakfast", "business-centre", "concierge",
	"conference-rooms", "currency-exchange", "elevator", "ev-charging", "family-rooms", "fireplace", "garden",
	"generator", "gym", "halal-kitchen", "heating", "kitchen", "laundry", "luggage-storage", "minibar",
	"non-smoking", "parking", "pets", "playground", "pool", "prayer-room", "private-bathroom", "restaurant",
	"room-service", "safe", "sauna", "security-guard", "spa", "terrace", "tv", "washing-machine", "wifi",
	"women-only-floor", "24h-reception",
)

func set(words ...string) map[string]bool {
	all := make(map[string]bool, len(words))
	for _, w := range words {
		all[w] = true
	}
	return all
}
