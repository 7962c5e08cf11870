package dataset

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Row is an accommodation as a line of a file or a feature of a map describes it. Row has no
// derived members: an empty field was absent in the source.
type Row struct {
	ID        string            // of the source, such as "node/590463653"; see toRow for rows without an id
	Name      string            // usually in the local language
	Names     map[string]string // by language, such as "ar" and "fa"
	Kind      string            // hotel, guesthouse, hostel, motel, apartment, chalet
	Point     geo.Point
	Country   string // ISO 3166-1 alpha-2
	City      string
	Region    string
	District  string
	Street    string
	Brand     string
	Stars     int      // 1 to 5; 0 if absent
	Rooms     int      // 0 if absent
	Amenities []string // codes such as wifi and breakfast
	Source    string   // name of the collection
	Given     []string // names of the members present in the source; all others are derived
}

// kinds maps the spellings of OpenStreetMap and its extracts to the kinds of Row. "" marks kinds
// that do not rent rooms.
var kinds = map[string]string{
	"hotel": "hotel", "resort": "hotel", "riad": "hotel",
	"guest_house": "guesthouse", "guesthouse": "guesthouse", "bed_and_breakfast": "guesthouse", "homestay": "guesthouse",
	"hostel": "hostel", "alpine_hut": "hostel",
	"motel":     "motel",
	"apartment": "apartment", "apartments": "apartment", "aparthotel": "apartment",
	"chalet":    "chalet",
	"camp_site": "", "caravan_site": "", "wilderness_hut": "",
}

const (
	maxName = 120 // characters; longer names are usually descriptions in the wrong field
	maxText = 80  // characters
	// maxNames is above the number of translations of any hotel. Airports and mosques have more,
	// and the upstream contract allows 50.
	maxNames = 40
)

// fields holds the members of a JSON object: members of Row, or tags of OpenStreetMap. A value may
// be a text, a number or a list, because the tags are not consistent.
type fields map[string]any

// text returns the first member with a usable text, cut to limit characters, or "".
func (f fields) text(limit int, names ...string) string {
	for _, name := range names {
		var s string
		switch v := f[name].(type) {
		case string:
			s = cleanText(v, limit)
		case float64:
			s = strings.TrimSuffix(fmt.Sprintf("%.6f", v), ".000000")
		}
		if s != "" {
			return s
		}
	}
	return ""
}

var leadingNumber = regexp.MustCompile(`^\s*[+-]?\d+(\.\d+)?`)

// number reads a number, or the number at the start of a text: 31.5, "31.5" or "4 stars".
func (f fields) number(name string) (float64, bool) {
	switch v := f[name].(type) {
	case float64:
		return v, true
	case string:
		var n float64
		_, err := fmt.Sscan(leadingNumber.FindString(v), &n)
		return n, err == nil
	}
	return 0, false
}

// intBetween reads a number from low to high inclusive and cuts its fraction. It returns 0 for
// other values.
func (f fields) intBetween(name string, low, high int) int {
	n, ok := f.number(name)
	if !ok || n < float64(low) || n >= float64(high+1) {
		return 0
	}
	return int(n)
}

var (
	languageTag = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z]{2,4})?$`)
	countryCode = regexp.MustCompile(`^[A-Z]{2}$`)
	amenityCode = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)
)

var (
	errNoName     = errors.New("the row has no name")
	errNoKind     = errors.New("the row has no kind (kind, tourism, fclass or building)")
	errNoID       = errors.New("the row has neither an id nor a kind (hotel, guesthouse …)")
	errNoPosition = errors.New("the row has no position")
	errNoLat      = errors.New("the row has no position: lat is missing or not a number")
	errNoLng      = errors.New("the row has no position: lng is missing or not a number")
	errPosition   = errors.New("the position of the row is not valid")
	errNoCountry  = errors.New("the row has no country (country or addr:country) and no known city is within 250 km")
)

// kind returns the source's kind of the place, or "".
func (f fields) kind() string { return f.text(maxText, "kind", "tourism", "fclass", "building") }

// toRow returns the Row of the members, or an error with the reason why the members are not an
// accommodation. A row with an id and without a kind is a hotel.
func (f fields) toRow() (Row, error) {
	r := Row{
		ID:       f.text(maxText, "id", "@id", "full_id", "osm_id"),
		Name:     f.text(maxName, "name", "name:en", "int_name", "official_name", "operator"),
		Names:    map[string]string{},
		Country:  strings.ToUpper(f.text(maxText, "country", "addr:country", "is_in:country_code", "ISO3166-1")),
		City:     f.text(maxText, "city", "addr:city", "addrCity", "addr:town", "addr:village", "is_in:city"),
		Region:   f.text(maxText, "region", "addr:state", "addr:province", "addr:region"),
		District: f.text(maxText, "district", "addr:suburb", "addr:neighbourhood", "addr:district", "addr:quarter"),
		Street:   f.text(maxText, "street", "addr:street"),
		Brand:    f.text(maxText, "brand"),
		Stars:    f.intBetween("stars", 1, 5),
		Rooms:    f.intBetween("rooms", 1, 5000),
		Source:   f.text(maxText, "src", "source"),
	}
	f.collectNames(r.Names)
	if r.Name == "" {
		for _, lang := range []string{"en", "fr", "ar", "fa", "ur", "ps", "ru", "tg"} {
			if r.Name = r.Names[lang]; r.Name != "" {
				break
			}
		}
	}
	if r.Name == "" {
		return Row{}, errNoName
	}
	kind := f.kind()
	r.Kind = kinds[strings.ToLower(kind)]
	switch {
	case kind == "" && r.ID == "":
		return Row{}, errNoID
	case kind == "":
		r.Kind = "hotel"
	case r.Kind == "":
		return Row{}, fmt.Errorf("%q is not a kind of accommodation", kind)
	}
	if !countryCode.MatchString(r.Country) {
		r.Country = ""
	}
	lat, okLat := f.number("lat")
	lng, okLng := f.number("lng")
	if !okLng {
		lng, okLng = f.number("lon")
	}
	if !okLat {
		return Row{}, errNoLat
	}
	if !okLng {
		return Row{}, errNoLng
	}
	r.Point = geo.Point{Lat: lat, Lng: lng}
	if !r.Point.Valid() || lat == 0 && lng == 0 {
		return Row{}, errPosition
	}
	if r.ID == "" {
		// An id from the content keeps the derived members stable when lines of the file move.
		r.ID = fmt.Sprintf("%s@%.5f,%.5f", Fold(r.Name), lat, lng)
	}
	r.Amenities = f.amenities()
	r.Given = r.givenMembers(kind != "")
	return r, nil
}

// givenMembers returns the names of the members present in the source. kind reports whether the
// source has a kind.
func (r *Row) givenMembers(kind bool) []string {
	var all []string
	for _, member := range []struct {
		name  string
		known bool
	}{
		{"name", true}, {"kind", kind}, {"position", true},
		{"names", len(r.Names) > 0}, {"country", r.Country != ""}, {"city", r.City != ""}, {"region", r.Region != ""},
		{"district", r.District != ""}, {"street", r.Street != ""}, {"brand", r.Brand != ""}, {"stars", r.Stars > 0},
		{"rooms", r.Rooms > 0}, {"amenities", len(r.Amenities) > 0},
	} {
		if member.known {
			all = append(all, member.name)
		}
	}
	return all
}

// collectNames collects the translations of the name from "names": {"ar": …} and from
// OpenStreetMap's "name:ar". Above maxNames it keeps Languages only.
func (f fields) collectNames(into map[string]string) {
	add := func(lang string, value any) {
		if text, ok := value.(string); ok && languageTag.MatchString(lang) {
			if text = cleanText(text, maxName); text != "" {
				into[lang] = text
			}
		}
	}
	if given, ok := f["names"].(map[string]any); ok {
		for lang, text := range given {
			add(lang, text)
		}
	}
	for key, text := range f {
		if lang, ok := strings.CutPrefix(key, "name:"); ok {
			add(lang, text)
		}
	}
	if len(into) > maxNames {
		maps.DeleteFunc(into, func(lang, _ string) bool { return !slices.Contains(Languages, lang) })
	}
}

// amenityTags maps tags of OpenStreetMap to amenity codes. values is a list separated by spaces.
var amenityTags = []struct{ tag, values, code string }{
	{"internet_access", "wlan yes wifi", "wifi"},
	{"wifi", "yes free", "wifi"},
	{"breakfast", "yes", "breakfast"},
	{"restaurant", "yes", "restaurant"},
	{"air_conditioning", "yes", "air-conditioning"},
	{"swimming_pool", "yes", "pool"},
	{"parking", "yes surface underground multi-storey", "parking"},
	{"wheelchair", "yes designated", "wheelchair"},
	{"smoking", "no", "non-smoking"},
	{"laundry_service", "yes", "laundry"},
	{"kitchen", "yes", "kitchen"},
	{"diet:halal", "yes only", "halal-kitchen"},
}

// amenities returns the amenity codes of the member amenities and of amenityTags, without
// duplicates.
func (f fields) amenities() []string {
	var all []string
	add := func(code string) {
		if !slices.Contains(all, code) {
			all = append(all, code)
		}
	}
	if list, ok := f["amenities"].([]any); ok {
		for _, entry := range list {
			if code, ok := entry.(string); ok {
				if code = strings.ReplaceAll(strings.ToLower(code), "_", "-"); amenityCode.MatchString(code) {
					add(code)
				}
			}
		}
	}
	for _, t := range amenityTags {
		value, _ := f[t.tag].(string)
		for _, one := range strings.Fields(t.values) {
			if strings.EqualFold(value, one) {
				add(t.code)
			}
		}
	}
	return all
}

// cleanText returns a text as a printable line: valid UTF-8, no control characters, single spaces,
// at most limit characters. Joiners and direction marks stay, because Persian and mixed names need
// them.
func cleanText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\uFEFF' {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > limit {
		s = strings.TrimSpace(string([]rune(s)[:limit]))
	}
	return s
}
