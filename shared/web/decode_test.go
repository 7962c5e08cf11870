package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// query resembles the largest request there is, with what others need besides.
type query struct {
	Geo       geo            `json:"geo"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Filters   *filters       `json:"filters"`
	SortKey   string         `json:"sortKey"`
	Page      struct {
		Limit  uint8 `json:"limit"`
		Offset int   `json:"offset"`
	} `json:"page"`
	Consent  *bool             `json:"consent"`
	Labels   map[string]string `json:"labels"`
	Metadata map[string]any    `json:"metadata"`
	Raw      jsontext.Value    `json:"raw"`
	Days     []stay.Date       `json:"days"`
	campaignFields
}

type campaignFields struct {
	Campaign string `json:"campaign"`
}

type geo struct {
	Mode        string `json:"mode"`
	Point       *point `json:"point"`
	BoundingBox *struct {
		SwLat float64 `json:"swLat"`
		NeLat float64 `json:"neLat"`
	} `json:"boundingBox"`
	City string `json:"city"`
}

type point struct {
	Lat      float64 `json:"lat"`
	Lng      float64 `json:"lng"`
	RadiusKm float64 `json:"radiusKm"`
}

type filters struct {
	Amenities  []string `json:"amenities"`
	StarRating []int    `json:"starRating"`
	FreeCancel bool     `json:"freeCancel"`
}

const validBody = `{"geo":{"mode":"point","point":{"lat":34.5,"lng":69.2,"radiusKm":10}},"dates":{"checkIn":"2026-11-06","checkOut":"2026-11-08"},` +
	`"occupancy":{"adults":2,"children":1,"rooms":1,"childrenAges":[7]},"filters":{"amenities":["wifi","prayer-room"],"starRating":[3,4]},` +
	`"sortKey":"price-asc","page":{"limit":20,"offset":0},"campaign":"eid"}`

func newPost(body string) *http.Request {
	r := httptest.NewRequest("POST", BasePath+"/search", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func nested(open, inner, close string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
}

// Each body and what is said of it: status, field and code.
var malformedBodies = []struct{ rule, body, want string }{
	{"nothing", "", "400 body empty"},
	{"only space", " \n\t ", "400 body empty"},
	{"not JSON", "hello", "400 body syntax"},
	{"a form", "city=Kabul&adults=2", "400 body syntax"},
	{"XML", "<search/>", "400 body syntax"},
	{"single quotes", "{'geo':1}", "400 body syntax"},
	{"a byte order mark", "\xef\xbb\xbf{}", "400 body syntax"},
	{"UTF-16", "\xff\xfe{\x00}\x00", "400 body utf-8"},
	{"a comment", `{/* */}`, "400 body syntax"},
	{"unfinished", `{"geo":{"mode":"city"`, "400 geo syntax"},
	{"unfinished string", `{"geo":{"mode":"ci`, "400 geo.mode syntax"},
	{"unfinished number", `{"page":{"offset":1`, "400 page syntax"},
	{"a name without value", `{"geo"}`, "400 geo syntax"},
	{"a comma too many", `{"geo":{"mode":"city",}}`, "400 geo syntax"},
	{"a comma missing", `{"sortKey":"a" "campaign":"b"}`, "400 body syntax"},
	{"no quotes", `{sortKey:"a"}`, "400 body syntax"},
	{"trailing data", `{} {}`, "400 body syntax"},
	{"trailing brace", validBody + "}", "400 body syntax"},
	{"trailing NUL", "{}\x00", "400 body syntax"},
	{"brackets that do not match", `{"filters":{"amenities":["a"}}`, "400 filters.amenities syntax"},
	{"null", "null", "422 body null"},
	{"an array", `[{}]`, "422 body type"},
	{"a string", `"search"`, "422 body type"},
	{"a number", `7`, "422 body type"},
	{"a boolean", `true`, "422 body type"},
	{"NaN", `{"geo":{"point":{"lat":NaN}}}`, "400 geo.point.lat syntax"},
	{"Infinity", `{"geo":{"point":{"lat":-Infinity}}}`, "400 geo.point.lat syntax"},
	{"hexadecimal", `{"page":{"offset":0x10}}`, "400 page syntax"},
	{"a leading zero", `{"page":{"offset":01}}`, "400 page syntax"},
	{"a plus sign", `{"page":{"offset":+1}}`, "400 page.offset syntax"},
	{"a bare point", `{"geo":{"point":{"lat":.5}}}`, "400 geo.point.lat syntax"},
	{"a cut literal", `{"consent":tru}`, "400 consent syntax"},
	{"an upper-case literal", `{"consent":True}`, "400 consent syntax"},
	{"a control character in a string", "{\"geo\":{\"city\":\"Ka\x01bul\"}}", "400 geo.city syntax"},
	{"a line break in a string", "{\"geo\":{\"city\":\"Ka\nbul\"}}", "400 geo.city syntax"},
	{"NUL in a string", "{\"geo\":{\"city\":\"\x00\"}}", "400 geo.city syntax"},
	{"a control character between values", "{\x0b}", "400 body syntax"},
	{"invalid UTF-8 in a value", "{\"geo\":{\"city\":\"K\xffbul\"}}", "400 geo.city utf-8"},
	{"overlong UTF-8", "{\"geo\":{\"city\":\"\xc0\xaf\"}}", "400 geo.city utf-8"},
	{"invalid UTF-8 in a name", "{\"geo\xff\":1}", "400 body utf-8"},
	{"half a surrogate pair", `{"geo":{"city":"\ud83d"}}`, "400 geo.city syntax"},
	{"an unknown escape", `{"geo":{"city":"\x41"}}`, "400 geo.city syntax"},
	{"an unfinished escape", `{"geo":{"city":"\u00`, "400 geo.city syntax"},
	{"a duplicate name", `{"geo":{"mode":"city","mode":"region"}}`, "400 geo.mode duplicate"},
	{"a duplicate object", `{"geo":{},"dates":{},"geo":{}}`, "400 geo duplicate"},
	{"a duplicate in disguise", `{"sortKey":"a","sort\u004bey":"b"}`, "400 sortKey duplicate"},
	{"a duplicate in a map", `{"labels":{"a":"1","a":"2"}}`, "400 labels.a duplicate"},
	{"33 arrays", `{"raw":` + nested("[", "", "]", 32) + `}`, "400 raw depth"},
	{"deep objects", `{"metadata":` + nested(`{"secret":`, "1", "}", 40) + `}`, "400 metadata depth"},
	{"deep and unknown", nested(`{"a":`, "1", "}", 5000), "400 body depth"},
	{"deep and unfinished", `{"filters":{"amenities":` + strings.Repeat("[", 30000), "400 filters.amenities.0 depth"},
	{"too large", `{"sortKey":"` + strings.Repeat("a", 70<<10) + `"}`, "413 body too-large"},
	{"a byte too large", `{}` + strings.Repeat(" ", MaxBody-1), "413 body too-large"},
	{"too large and deep", strings.Repeat("[", 70<<10), "413 body too-large"},
	{"an unknown field", `{"geo":{},"tenantId":"tnt_1"}`, "422 tenantId unknown"},
	{"an unknown field inside", `{"geo":{"point":{"lat":1,"lon":2}}}`, "422 geo.point.lon unknown"},
	{"another case", `{"GEO":{}}`, "422 GEO unknown"},
	{"an empty name", `{"":1}`, "422 body unknown"},
	{"a long unknown name", `{"` + strings.Repeat("é", 3000) + `":1}`, "422 " + strings.Repeat("é", 64) + "… unknown"},
	{"a name with a slash and a tilde", `{"a/b~c":1}`, "422 a/b~c unknown"},
	{"a Go name", `{"Geo":{}}`, "422 Geo unknown"},
	{"a string for an object", `{"geo":"Kabul"}`, "422 geo type"},
	{"an array for an object", `{"geo":[]}`, "422 geo type"},
	{"an object for a string", `{"geo":{"city":{}}}`, "422 geo.city type"},
	{"a number for a string", `{"geo":{"city":7}}`, "422 geo.city type"},
	{"a string for a number", `{"geo":{"point":{"lat":"34.5"}}}`, "422 geo.point.lat type"},
	{"a boolean for a number", `{"page":{"offset":true}}`, "422 page.offset type"},
	{"a string for a boolean", `{"filters":{"freeCancel":"true"}}`, "422 filters.freeCancel type"},
	{"a string for an array", `{"filters":{"amenities":"wifi"}}`, "422 filters.amenities type"},
	{"an object for an array", `{"filters":{"amenities":{"0":"wifi"}}}`, "422 filters.amenities type"},
	{"one wrong of many", `{"filters":{"amenities":["a","b","c",4]}}`, "422 filters.amenities.3 type"},
	{"a fraction for a whole number", `{"occupancy":{"adults":1.5}}`, "422 occupancy.adults type"},
	{"an exponent for a whole number", `{"occupancy":{"adults":1e1}}`, "422 occupancy.adults type"},
	{"beyond int64", `{"page":{"offset":9223372036854775808}}`, "422 page.offset out-of-range"},
	{"beyond uint8", `{"page":{"limit":256}}`, "422 page.limit out-of-range"},
	{"below zero", `{"page":{"limit":-1}}`, "422 page.limit type"},
	{"beyond float64", `{"geo":{"point":{"lat":1e400}}}`, "422 geo.point.lat out-of-range"},
	{"ten thousand digits", `{"page":{"offset":` + strings.Repeat("9", 10000) + `}}`, "422 page.offset out-of-range"},
	{"no date", `{"dates":{"checkIn":"tomorrow"}}`, "422 dates.checkIn date"},
	{"a day that does not exist", `{"dates":{"checkOut":"2026-02-30"}}`, "422 dates.checkOut date"},
	{"a date and time", `{"dates":{"checkIn":"2026-11-06T00:00:00Z"}}`, "422 dates.checkIn date"},
	{"a number for a date", `{"dates":{"checkIn":20261106}}`, "422 dates.checkIn type"},
	{"a wrong date in a list", `{"days":["2026-11-06",""]}`, "422 days.1 date"},
	{"null for an object", `{"geo":null}`, "422 geo null"},
	{"null for a string", `{"geo":{"city":null}}`, "422 geo.city null"},
	{"null for a number", `{"geo":{"point":{"lat":null}}}`, "422 geo.point.lat null"},
	{"null for a date", `{"dates":{"checkIn":null}}`, "422 dates.checkIn null"},
	{"null for an array", `{"filters":{"amenities":null}}`, "422 filters.amenities null"},
	{"null in an array", `{"filters":{"amenities":["a",null]}}`, "422 filters.amenities.1 null"},
	{"null in a map", `{"labels":{"a":null}}`, "422 labels.a null"},
	{"null in what is embedded", `{"campaign":null}`, "422 campaign null"},
	{"null for an unknown field", `{"nothing":null}`, "422 nothing unknown"},
}

func TestDecode_MalformedBodyNamesField(t *testing.T) {
	t.Parallel()
	if len(malformedBodies) < 60 {
		t.Fatalf("only %d bodies", len(malformedBodies))
	}
	for _, c := range malformedBodies {
		t.Run(c.rule, func(t *testing.T) {
			f := newTestFunction(t, "POST "+BasePath+"/search", func(w http.ResponseWriter, r *http.Request) error {
				var q query
				if err := Decode(r, &q); err != nil {
					return err
				}
				return WriteJSON(w, 200, q)
			})
			w := httptest.NewRecorder()
			f.ServeHTTP(w, newPost(c.body))
			p := readProblem(t, w)
			if len(p.Errors) != 1 {
				t.Fatalf("%d %s names %d fields", w.Code, p.Code, len(p.Errors))
			}
			if got := fmt.Sprintf("%d %s %s", w.Code, p.Errors[0].Field, p.Errors[0].Code); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if p.Errors[0].Detail == "" {
				t.Error("nothing says what would be right")
			}
		})
	}
}

func TestDecode_ReadsValidBody(t *testing.T) {
	t.Parallel()
	var q query
	if err := Decode(newPost(" \n"+validBody+"\n"), &q); err != nil {
		t.Fatal(err)
	}
	if q.Geo.Point.Lat != 34.5 || q.Dates.Nights() != 2 || q.Occupancy.ChildrenAges[0] != 7 || q.Filters.Amenities[1] != "prayer-room" ||
		q.Page.Limit != 20 || q.Campaign != "eid" {
		t.Errorf("%+v", q)
	}
}

func TestDecode_AcceptsBodiesAtTheLimits(t *testing.T) {
	t.Parallel()
	for rule, body := range map[string]string{
		"64 KiB":                   `{}` + strings.Repeat(" ", MaxBody-2),
		"32 deep":                  `{"raw":` + nested("[", "", "]", 31) + `}`,
		"brackets in strings":      `{"geo":{"city":"` + strings.Repeat("[{", 100) + `\"[[\\"}}`,
		"null for a pointer":       `{"filters":null,"consent":null,"geo":{"point":null}}`,
		"null for any and raw":     `{"metadata":{"a":null},"raw":null}`,
		"null in a string":         `{"geo":{"city":"null"}}`,
		"zero-width joiner, emoji": `{"geo":{"city":"می\u200cخوانم \ud83d\ude00"}}`,
	} {
		var q query
		if err := Decode(newPost(body), &q); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestDecode_AcceptsOnlyJSONMediaTypes(t *testing.T) {
	t.Parallel()
	for media, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "application/json;charset=UTF-8": true, "APPLICATION/JSON": true,
		`application/json; charset="Utf-8"`: true, "application/cloudevents+json": true, "application/problem+json; charset=utf-8": true,
		"application/json; version=1": true,
		"":                            false, "text/plain": false, "text/json": false, "application/xml": false, "application/x-www-form-urlencoded": false,
		"multipart/form-data; boundary=x": false, "application/json; charset=latin1": false, "application/json, text/plain": false,
		"application/jsonp": false, "application/": false, "application/json; charset=utf-8; charset=latin1": false, "\xff": false,
	} {
		r := newPost(validBody)
		r.Header.Set("Content-Type", media)
		var q query
		err := Decode(r, &q)
		if ok && err != nil || !ok && (problem.FromError(err).Kind != problem.MalformedRequest || problem.FromError(err).Fields[0].Field != "Content-Type") {
			t.Errorf("%q: %v", media, err)
		}
	}
	r := newPost(validBody)
	r.Header.Set("Content-Encoding", "gzip")
	if p := problem.FromError(Decode(r, new(query))); p.Kind != problem.MalformedRequest || p.Fields[0].Field != "Content-Encoding" {
		t.Errorf("a content encoding: %v", p)
	}
}

func TestDecode_TruncatedBodyIsMalformed(t *testing.T) {
	t.Parallel()
	for rule, body := range map[string]io.Reader{
		"early": io.MultiReader(strings.NewReader(`{"geo":`), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"never": http.NoBody,
	} {
		r := httptest.NewRequest("POST", "/", body)
		r.Header.Set("Content-Type", "application/json")
		if p := problem.FromError(Decode(r, new(query))); p.Kind != problem.MalformedRequest || p.Fields[0].Field != "body" {
			t.Errorf("%s: %v", rule, p)
		}
	}
	large := newPost("{}")
	large.ContentLength = MaxBody + 1
	if p := problem.FromError(Decode(large, new(query))); p.Kind != problem.PayloadTooLarge {
		t.Errorf("announced too large: %v", p)
	}
}

func TestDescribeType_NamesJSONType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{true, "true or false"}, {int8(1), "a whole number"}, {1.5, "a number"}, {[]int{}, "an array"}, {map[string]int{}, "an object"},
		{point{}, "an object"}, {stay.Date{}, "a string"}, {"", "a string"}, {new(point), "an object"},
	} {
		if got := describeType(reflect.TypeOf(c.v)); got != c.want {
			t.Errorf("%T is %s, want %s", c.v, got, c.want)
		}
	}
	if describeType(nil) == "" {
		t.Error("no words for no type")
	}
}

func FuzzDecode_AcceptsOrNamesOneField(f *testing.F) {
	f.Add(validBody)
	for _, c := range malformedBodies {
		if len(c.body) < 1<<10 {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		err := Decode(newPost(body), new(query))
		if err == nil {
			return
		}
		p, ok := errors.AsType[*problem.Problem](err)
		if !ok || p.Kind.Status < 400 || p.Kind.Status > 499 || len(p.Fields) != 1 || p.Fields[0].Field == "" {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := strings.NewReader("")
	r := httptest.NewRequest("POST", "/", io.NopCloser(body))
	r.Header.Set("Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(validBody)
		var q query
		if err := Decode(r, &q); err != nil {
			b.Fatal(err)
		}
	}
}

// The worst body for checkNulls: every value is a null.
func BenchmarkDecode_Nulls(b *testing.B) {
	text := `{"metadata":{"a":[null` + strings.Repeat(",null", 13000) + `]}}`
	for b.Loop() {
		if err := Decode(newPost(text), new(query)); err != nil {
			b.Fatal(err)
		}
	}
}
