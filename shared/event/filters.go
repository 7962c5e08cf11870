package event

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// Filters says which filters a search used. It can hold nothing but the platform's own words, because
// only FilterKeys and the decoder fill it; its JSON is an array of strings.
type Filters struct{ keys []string }

// FilterKeys reports amenities by their codes and every other filter by its name ("priceRange",
// "neighbourhoods"), sorted, each once. An amenity outside the platform's vocabulary could be typed
// text and is reported as "amenities"; a filter of another name is left out.
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

// Keys lists the filters, sorted.
func (f Filters) Keys() []string { return slices.Clone(f.keys) }

// MarshalJSON writes [] when no filter was used.
func (f Filters) MarshalJSON() ([]byte, error) { return json.Marshal(f.keys) }

// UnmarshalJSON takes what was written, also words of a newer vocabulary.
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
