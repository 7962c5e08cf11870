package search

import (
	"strings"
	"testing"
)

// malformedBodies returns bodies that must be refused, each with the field that the refusal names
// ("" for any field). Most bodies replace a part of a valid one.
func malformedBodies(h *harness) map[string]struct{ body, field string } {
	type c = struct{ body, field string }
	with := func(pairs ...string) string { return h.requestBody("Kabul", pairs...) }
	geo := func(g string) string { return with(`{"mode":"city","city":"Kabul"}`, g) }
	occupancy := func(o string) string { return with(`{"adults":2,"children":0,"rooms":1}`, o) }
	extra := func(members string) string { return with(`"occupancy"`, members+`,"occupancy"`) }
	filters := func(f string) string { return extra(`"filters":` + f) }
	point := func(p string) string { return geo(`{"mode":"point","point":` + p + `}`) }
	box := func(b string) string { return geo(`{"mode":"bounding-box","boundingBox":` + b + `}`) }
	valid := with()
	dates := valid[strings.Index(valid, `"dates":`)+8 : strings.Index(valid, `,"occupancy"`)]
	date := func(d string) string { return with(dates, d) }
	return map[string]c{
		"empty":                          {"", "body"},
		"blank":                          {"  \n", "body"},
		"null":                           {"null", "body"},
		"an array":                       {"[]", "body"},
		"a string":                       {`"search"`, "body"},
		"a number":                       {"17", "body"},
		"cut":                            {valid[:len(valid)-1], ""},
		"two values":                     {valid + valid, ""},
		"trailing text":                  {valid + "x", ""},
		"a comma too many":               {strings.Replace(valid, `"rooms":1}`, `"rooms":1,}`, 1), ""},
		"single quotes":                  {strings.ReplaceAll(valid, `"`, `'`), ""},
		"a byte order mark":              {"\xef\xbb\xbf" + valid, ""},
		"XML":                            {"<search/>", ""},
		"an empty object":                {"{}", "geo.mode"},
		"deep nesting":                   {filters(`{"amenities":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`), ""},
		"very deep nesting":              {strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), ""},
		"70 KiB":                         {with("Kabul", strings.Repeat("k", 70<<10)), ""},
		"70 KiB of blanks":               {valid + strings.Repeat(" ", 70<<10), ""},
		"an unknown field":               {extra(`"tenant":"x"`), "tenant"},
		"an unknown field below":         {geo(`{"mode":"city","city":"Kabul","planet":"earth"}`), "geo.planet"},
		"a field in other case":          {extra(`"SortKey":"price-asc"`), "SortKey"},
		"a duplicate key":                {extra(`"sortKey":"price-asc","sortKey":"price-desc"`), "sortKey"},
		"a duplicate key below":          {geo(`{"mode":"city","mode":"city","city":"Kabul"}`), "geo.mode"},
		"NaN":                            {point(`{"lat":NaN,"lng":69.2,"radiusKm":5}`), "geo.point.lat"},
		"Infinity":                       {point(`{"lat":34,"lng":Infinity,"radiusKm":5}`), "geo.point.lng"},
		"a number as text":               {point(`{"lat":"34","lng":69,"radiusKm":5}`), "geo.point.lat"},
		"a number too large":             {point(`{"lat":1e400,"lng":69,"radiusKm":5}`), "geo.point.lat"},
		"latitude 91":                    {point(`{"lat":91,"lng":69,"radiusKm":5}`), "geo.point"},
		"longitude -181":                 {point(`{"lat":34,"lng":-181,"radiusKm":5}`), "geo.point"},
		"no radius":                      {point(`{"lat":34,"lng":69}`), "geo.point.radiusKm"},
		"a negative radius":              {point(`{"lat":34,"lng":69,"radiusKm":-1}`), "geo.point.radiusKm"},
		"radius 201":                     {point(`{"lat":34,"lng":69,"radiusKm":201}`), "geo.point.radiusKm"},
		"no mode":                        {geo(`{"city":"Kabul"}`), "geo.mode"},
		"an unknown mode":                {geo(`{"mode":"country","city":"Kabul"}`), "geo.mode"},
		"a mode as number":               {geo(`{"mode":1}`), "geo.mode"},
		"two geo modes":                  {geo(`{"mode":"city","city":"Kabul","region":"Herat"}`), "geo.region"},
		"point and box":                  {geo(`{"mode":"point","point":{"lat":1,"lng":1,"radiusKm":1},"boundingBox":{"swLat":1,"swLng":1,"neLat":2,"neLng":2}}`), "geo.boundingBox"},
		"a mode without its part":        {geo(`{"mode":"region","city":"Kabul"}`), "geo.region"},
		"geo is a list":                  {geo(`[]`), "geo"},
		"geo is null":                    {geo(`null`), "geo"},
		"a box upside down":              {box(`{"swLat":35,"swLng":60,"neLat":34,"neLng":61}`), "geo.boundingBox"},
		"a box without width":            {box(`{"swLat":34,"swLng":60,"neLat":35,"neLng":60}`), "geo.boundingBox"},
		"a box beyond the pole":          {box(`{"swLat":88,"swLng":60,"neLat":91,"neLng":61}`), "geo.boundingBox"},
		"a box of 26 square degrees":     {box(`{"swLat":30,"swLng":60,"neLat":35,"neLng":65.2}`), "geo.boundingBox"},
		"an empty city":                  {geo(`{"mode":"city","city":""}`), "geo.city"},
		"a blank city":                   {geo(`{"mode":"city","city":"  "}`), "geo.city"},
		"a city with a control":          {geo(`{"mode":"city","city":"Ka\u0000bul"}`), "geo.city"},
		"a city with a raw control":      {geo("{\"mode\":\"city\",\"city\":\"Ka\x01bul\"}"), "geo.city"},
		"a city with a new line":         {geo(`{"mode":"city","city":"Kabul\nHerat"}`), "geo.city"},
		"invalid UTF-8":                  {geo("{\"mode\":\"city\",\"city\":\"Ka\xffbul\"}"), "geo.city"},
		"half a surrogate":               {geo(`{"mode":"city","city":"Ka\ud800bul"}`), "geo.city"},
		"a long city":                    {geo(`{"mode":"city","city":"` + strings.Repeat("x", 81) + `"}`), "geo.city"},
		"reversed dates":                 {date(`{"checkIn":"2027-01-05","checkOut":"2027-01-03"}`), "dates.checkOut"},
		"no night":                       {date(`{"checkIn":"2027-01-05","checkOut":"2027-01-05"}`), "dates.checkOut"},
		"31 nights":                      {date(`{"checkIn":"2027-01-01","checkOut":"2027-02-01"}`), "dates.checkOut"},
		"31 February":                    {date(`{"checkIn":"2027-02-31","checkOut":"2027-03-02"}`), "dates.checkIn"},
		"a date with a time":             {date(`{"checkIn":"2027-02-01T00:00:00Z","checkOut":"2027-02-03"}`), "dates.checkIn"},
		"a date as number":               {date(`{"checkIn":20270201,"checkOut":"2027-02-03"}`), "dates.checkIn"},
		"a past date":                    {date(`{"checkIn":"2020-02-01","checkOut":"2020-02-03"}`), "dates.checkIn"},
		"a far date":                     {date(`{"checkIn":"2099-02-01","checkOut":"2099-02-03"}`), "dates.checkIn"},
		"no dates":                       {date(`{}`), "dates.checkIn"},
		"dates is null":                  {date(`null`), "dates"},
		"no adults":                      {occupancy(`{"children":1,"rooms":1}`), "occupancy.adults"},
		"no rooms":                       {occupancy(`{"adults":1}`), "occupancy.rooms"},
		"negative children":              {occupancy(`{"adults":1,"children":-1,"rooms":1}`), "occupancy.children"},
		"half a child":                   {occupancy(`{"adults":1,"children":0.5,"rooms":1}`), "occupancy.children"},
		"too many adults":                {occupancy(`{"adults":17,"children":0,"rooms":1}`), "occupancy.adults"},
		"a crowd":                        {occupancy(`{"adults":99999999999999999999,"children":0,"rooms":1}`), "occupancy.adults"},
		"too many rooms":                 {occupancy(`{"adults":1,"children":0,"rooms":9}`), "occupancy.rooms"},
		"ages without children":          {occupancy(`{"adults":1,"children":0,"rooms":1,"childrenAges":[4]}`), "occupancy.childrenAges"},
		"an age of 18":                   {occupancy(`{"adults":1,"children":1,"rooms":1,"childrenAges":[18]}`), "occupancy.childrenAges.0"},
		"an age as text":                 {occupancy(`{"adults":1,"children":1,"rooms":1,"childrenAges":["4"]}`), "occupancy.childrenAges.0"},
		"an unknown sort":                {extra(`"sortKey":"cheapest"`), "sortKey"},
		"six stars":                      {filters(`{"starRating":[6]}`), "filters.starRating.0"},
		"stars as one number":            {filters(`{"starRating":5}`), "filters.starRating"},
		"a rating of 11":                 {filters(`{"guestRatingMin":11}`), "filters.guestRatingMin"},
		"an amenity in capitals":         {filters(`{"amenities":["wifi","WIFI"]}`), "filters.amenities.1"},
		"an amenity as sentence":         {filters(`{"amenities":["a pool please"]}`), "filters.amenities.0"},
		"amenities as text":              {filters(`{"amenities":"wifi"}`), "filters.amenities"},
		"too many amenities":             {filters(`{"amenities":["a"` + strings.Repeat(`,"a"`, 20) + `]}`), "filters.amenities"},
		"an unknown cancellation":        {filters(`{"cancellationFlexibility":"never"}`), "filters.cancellationFlexibility"},
		"a neighbourhood with a control": {filters(`{"neighbourhoods":["ok","a\tb"]}`), "filters.neighbourhoods.1"},
		"a price without currency":       {filters(`{"priceRange":{"min":"1"}}`), "filters.priceRange.currency"},
		"a price range of nothing":       {filters(`{"priceRange":{"currency":"AFN"}}`), "filters.priceRange"},
		"a price in yen":                 {filters(`{"priceRange":{"min":"1","currency":"JPY"}}`), "filters.priceRange.currency"},
		"a negative price":               {filters(`{"priceRange":{"min":"-1","currency":"AFN"}}`), "filters.priceRange.min"},
		"a price with a point":           {filters(`{"priceRange":{"max":"1.50","currency":"AFN"}}`), "filters.priceRange.max"},
		"a price as list":                {filters(`{"priceRange":{"max":[1],"currency":"AFN"}}`), "filters.priceRange.max"},
		"a price that is reversed":       {filters(`{"priceRange":{"min":"2","max":"1","currency":"AFN"}}`), "filters.priceRange.max"},
		"limit 51":                       {extra(`"page":{"limit":51}`), "page.limit"},
		"limit as text":                  {extra(`"page":{"limit":"20"}`), "page.limit"},
		"offset 1001":                    {extra(`"page":{"offset":1001}`), "page.offset"},
		"page as number":                 {extra(`"page":2`), "page"},
		"a spotlight in a list":          {extra(`"spotlightPropertyId":"ppt_00000000000000000000000001"`), "spotlightPropertyId"},
	}
}

func TestSearchRequest_MalformedBodyNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	table := malformedBodies(h)
	if len(table) < 60 {
		t.Fatalf("got %d bodies; want at least 60", len(table))
	}
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/search", "/search/map"} {
				a := h.do("POST", path, c.body)
				if a.StatusCode < 400 || a.StatusCode > 499 || a.Header.Get("Content-Type") != "application/problem+json" || a.SessionCookie() != "" {
					t.Errorf("%s: got %d %s; want a 4xx problem without a cookie", path, a.StatusCode, a.Text)
					continue
				}
				named := false
				for _, e := range a.Errors {
					named = named || e.Field != "" && (c.field == "" || e.Field == c.field)
				}
				if !named && path == "/search" {
					t.Errorf("got %s; want %q named", a.Text, c.field)
				}
			}
		})
	}
	if n := h.upstreams.Calls(); n != 0 {
		t.Errorf("got %d upstream calls; want 0", n)
	}
}

func TestSearchList_AcceptsOnlyJSON(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for media, want := range map[string]int{
		"application/json":                  200,
		"application/json; charset=utf-8":   200,
		"application/json; charset=latin-1": 400,
		"text/plain":                        400,
		"multipart/form-data":               400,
		"application/x-www-form-urlencoded": 400,
		"":                                  400,
		"json":                              400,
	} {
		if a := h.do("POST", "/search", h.requestBody("Kabul"), "Content-Type", media); a.StatusCode != want {
			t.Errorf("%q: got %d; want %d", media, a.StatusCode, want)
		}
	}
}
