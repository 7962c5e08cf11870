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

// Row is what one line of a file, or one feature of a map, says about a place to stay. Nothing is derived here:
// an empty field was not given.
type Row struct {
	ID        string            // the source's own id, "node/590463653"
	Name      string            // in the language of the place, or whatever the mapper wrote
	Names     map[string]string // by language, "ar", "fa"
	Kind      string            // hotel, guesthouse, hostel, motel, apartment, chalet
	Point     geo.Point
	Country   string // ISO 3166-1 alpha-2
	City      string
	Region    string
	District  string
	Street    string
	Brand     string
	Stars     int // 0: not given
	Rooms     int
	Amenities []string // our codes: wifi, breakfast …
	Source    string   // who collected it
	Given     []string // names of the members the source filled in; all others are synthetic
}

// kinds maps the spellings of OpenStreetMap and of its extracts to ours. "" is a known kind of place where
// nobody rents a room.
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
	maxName = 120 // characters; longer ones are descriptions that were typed into the wrong field
	maxText = 80
	// maxNames is beyond what any house has; airports and mosques have more, and the wire allows 50.
	maxNames = 40
)

// fields reads a row from the members of a JSON object: ours, or OpenStreetMap's tags, which dirt has made text,
// numbers or lists in any mixture.
type fields map[string]any

// text returns the first of the members that has a usable text.
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

// number reads 31.5, "31.5" or "4 stars".
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

// intBetween reads a number between low and high, both included; 0 when there is none.
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
	errNoName     = errors.New("it has no name")
	errNoKind     = errors.New("it has no kind (kind, tourism, fclass or building)")
	errNoID       = errors.New("it has no id: without a kind (hotel, guesthouse …) it needs one")
	errNoPosition = errors.New("it has no position")
	errNoLat      = errors.New("it has no position: lat is missing or no number")
	errNoLng      = errors.New("it has no position: lng is missing or no number")
	errPosition   = errors.New("its position is outside the world")
	errNoCountry  = errors.New("it says no country (country or addr:country) and is near no city we know")
)

// kind is what the source calls the place; "" when it does not say.
func (f fields) kind() string { return f.text(maxText, "kind", "tourism", "fclass", "building") }

// toRow turns the members into a Row, or says why they are none. A row that has all but a kind is a hotel.
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
		return Row{}, fmt.Errorf("%q is no place to stay", kind)
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
		// Without an id the row is known by what it says, so that it keeps its hotel when lines move.
		r.ID = fmt.Sprintf("%s@%.5f,%.5f", Fold(r.Name), lat, lng)
	}
	r.Amenities = f.amenities()
	r.Given = r.givenMembers(kind != "")
	return r, nil
}

// givenMembers names what the row fills in by itself.
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

// collectNames collects "names": {"ar": …} and OpenStreetMap's "name:ar".
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

// amenityTags says which of OpenStreetMap's tags mean which of our amenities.
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

// cleanText makes one printable line of a text: valid UTF-8, no control characters, single spaces, at most limit
// characters. Joiners and direction marks stay, because Persian and mixed names need them.
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
