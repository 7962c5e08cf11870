package event

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// Filters names the filters of a search. Filters holds words of the platform only, because nothing
// but FilterKeys and the JSON decoder sets the words. The JSON form is an array of strings.
type Filters struct{ keys []string }

// FilterKeys returns the codes of amenities and the names of other filters ("priceRange",
// "neighbourhoods"), sorted, without duplicates. An unknown amenity becomes "amenities", because
// the guest may have typed the text. FilterKeys leaves out unknown names and never fails. Pure.
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

// Keys returns a copy of the filters: sorted from FilterKeys, in the order of the JSON from
// UnmarshalJSON; nil or empty without filters.
func (f Filters) Keys() []string { return slices.Clone(f.keys) }

// MarshalJSON encodes an array, [] without filters. It never fails, because FilterKeys and
// UnmarshalJSON let in no invalid UTF-8.
func (f Filters) MarshalJSON() ([]byte, error) { return json.Marshal(f.keys) }

// UnmarshalJSON decodes an array of strings, or null as no filters. It accepts unknown words,
// perhaps from newer code, and keeps order and duplicates. Any other JSON gives an error and leaves
// f undefined.
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
