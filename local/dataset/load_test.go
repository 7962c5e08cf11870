package dataset

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// loadText loads a data set from the text of a file.
func loadText(t *testing.T, text string) (*Dataset, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "places.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func mustLoad(t *testing.T, text string) *Dataset {
	t.Helper()
	d, err := loadText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const validLine = `{"id":"node/1","name":"Dar Salam","kind":"hotel","lat":31.63,"lng":-7.99,"country":"MA","city":"Marrakesh"}`

func TestLoad_SkipsInvalidRowsWithLineAndReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, reason string }{
		"not JSON":            {`{"id":"node/2",`, "not a JSON object"},
		"not an object":       {`[1,2]`, "the value is a JSON array"},
		"no name":             {`{"id":"node/2","kind":"hotel","lat":1,"lng":2,"country":"MA"}`, "the row has no name"},
		"a name of spaces":    {`{"name":" \u0000 ","kind":"hotel","lat":1,"lng":2,"country":"MA"}`, "the row has no name"},
		"a museum":            {`{"name":"X","kind":"museum","lat":1,"lng":2,"country":"MA"}`, `"museum" is not a kind of accommodation`},
		"a camp site":         {`{"name":"X","tourism":"camp_site","lat":1,"lng":2,"country":"MA"}`, "not a kind of accommodation"},
		"no latitude":         {`{"name":"X","kind":"hotel","lng":1,"country":"MA"}`, "lat is missing"},
		"no longitude":        {`{"name":"X","kind":"hotel","lat":1,"lng":"east","country":"MA"}`, "lng is missing"},
		"no kind and no id":   {`{"name":"X","lat":1,"lng":2,"country":"MA"}`, "neither an id nor a kind"},
		"a feature of a kind": {`{"type":"Feature","id":"node/9","properties":{"name":"X","amenity":"bank"},"geometry":{"type":"Point","coordinates":[1,2]}}`, "the row has no kind"},
		"outside the world":   {`{"name":"X","kind":"hotel","lat":91,"lng":2,"country":"MA"}`, "position of the row is not valid"},
		"null island":         {`{"name":"X","kind":"hotel","lat":0,"lng":0,"country":"MA"}`, "position of the row is not valid"},
		"the same id again":   {validLine, `id "node/1" is already on line 1`},
		"a country of no one": {`{"name":"X","kind":"hotel","lat":-40.0,"lng":-140.0}`, "no country"},
		"a feature of air":    {`{"type":"Feature","properties":{"name":"X","tourism":"hotel"},"geometry":null}`, "no position"},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustLoad(t, validLine+"\n\n"+c.line+"\n")
			want := Report{Source: "places.json", Rows: 2, Kept: 1, Skipped: 1}
			got := d.Report
			got.FirstSkipped = nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("report %+v, want %+v", got, want)
			}
			if skip := d.Report.FirstSkipped[0]; skip.Line != 3 || !strings.Contains(skip.Reason, c.reason) {
				t.Errorf("skipped %+v, want line 3: %s", skip, c.reason)
			}
		})
	}
}

func TestLoad_UnreadableFileIsError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, reason string }{
		"empty":              {"", "the file has no rows"},
		"blank lines":        {"\n\n", "the file has no rows"},
		"only dirt":          {"x\n{}\n", "line 1: not a JSON object"},
		"a line without end": {strings.Repeat("x", maxLine+1), "line 1 is longer"},
		"broken collection":  {"{\"type\":\"FeatureCollection\",\"features\":[\n{\"type\":\"Feature\"\n", "line 2: unexpected EOF"},
		"features no list":   {`{"type":"FeatureCollection","features":7}`, "features is not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadText(t, c.text); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want %s", err, c.reason)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing file loads")
	}
}

func TestLoad_MinimalRowIsHotel(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, `{"id":"a","name":"Ä","lat":50,"lng":8,"country":"DE"}`+"\n"+`{"id":"b","name":"B","lat":33.97,"lng":-6.84}`)
	if p := d.Properties[0]; p.Row.Kind != "hotel" || !reflect.DeepEqual(p.Row.Given, []string{"name", "position", "country"}) {
		t.Errorf("row %+v", p.Row)
	}
	if p := d.Properties[1]; p.Row.Kind != "hotel" || p.Country != "MA" {
		t.Errorf("row %+v in %s", p.Row, p.Country)
	}
}

func TestLoad_NormalizesValues(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, "\xEF\xBB\xBF"+`{"id":7,"name":"  Hôtel \u0007 des\tArts ","names":{"ar":"فندق الفنون","x y":"no","fr":""},`+
		`"tourism":"Guest_House","lat":"31.63","lon":"-7.99","addr:country":"ma","addr:city":"Marrakech","stars":"4S",`+
		`"rooms":"12","amenities":["wifi","Air_Conditioning",7,"a b"],"internet_access":"wlan","smoking":"no","name:ur":"ہوٹل"}`+"\r\n")
	p := d.Properties[0]
	want := Row{
		ID: "7", Name: "Hôtel des Arts", Names: map[string]string{"ar": "فندق الفنون", "ur": "ہوٹل"}, Kind: "guesthouse",
		Point: p.Row.Point, Country: "MA", City: "Marrakech", Stars: 4, Rooms: 12,
		Amenities: []string{"wifi", "air-conditioning", "non-smoking"},
		Given:     []string{"name", "kind", "position", "names", "country", "city", "stars", "rooms", "amenities"},
	}
	if !reflect.DeepEqual(p.Row, want) {
		t.Errorf("row %+v\nwant %+v", p.Row, want)
	}
	if p.Row.Point.Lat != 31.63 || p.Row.Point.Lng != -7.99 {
		t.Errorf("position %v", p.Row.Point)
	}
	if p.Stars != 4 || p.Rooms != 12 || p.Amenities[0] != "wifi" {
		t.Errorf("what the row gives was replaced: %+v", p)
	}
}

func TestLoad_ReadsOpenStreetMapExports(t *testing.T) {
	t.Parallel()
	ring := `[[54.36,31.89],[54.38,31.89],[54.38,31.91],[54.36,31.91],[54.36,31.89]]`
	for name, text := range map[string]string{
		"overpass turbo": `{
			"type": "FeatureCollection", "generator": "overpass-turbo",
			"features": [
				{"type": "Feature", "id": "way/5",
				 "properties": {"@id": "way/5", "tourism": "hotel", "name": "هتل داد", "name:en": "Dad", "addr:city": "یزد"},
				 "geometry": {"type": "Polygon", "coordinates": [` + ring + `,[[54.3,31.8],[54.31,31.8],[54.3,31.8]]]}}
			]}`,
		"multipolygon": `{"features":[{"type":"Feature","id":"way/5","geometry":{"type":"MultiPolygon","coordinates":[[` + ring + `],[` + ring + `]]},` +
			`"properties":{"tourism":"hotel","name":"هتل داد","name:en":"Dad","addr:city":"Yazd"}}]}`,
		"geojson sequence": "\x1e" + `{"type":"Feature","properties":{"osm_id":"way/5","name":"هتل داد","other_tags":"\"tourism\"=>\"hotel\",\"addr:city\"=>\"Yazd\",\"name:en\"=>\"Dad\""},` +
			`"geometry":{"type":"LineString","coordinates":` + ring + `}}`,
		"one line": `{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"id":"way/5","fclass":"hotel","name":"هتل داد","name:en":"Dad"},` +
			`"geometry":{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[54.37,31.90]}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := mustLoad(t, text)
			p := d.Properties[0]
			if p.Row.ID != "way/5" || p.Row.Name != "هتل داد" || p.Row.Names["en"] != "Dad" || p.Row.Kind != "hotel" {
				t.Errorf("row %+v", p.Row)
			}
			if at := p.Row.Point; at.Lng < 54.3699 || at.Lng > 54.3701 || at.Lat < 31.8999 || at.Lat > 31.9001 {
				t.Errorf("its middle is %v", at)
			}
			if p.Country != "IR" || p.City == nil || d.City("yazd") != p.City || p.Region == nil || p.Region.Name != "Yazd" {
				t.Errorf("it is in %s, city %+v, region %+v", p.Country, p.City, p.Region)
			}
		})
	}
}

func TestLoad_ReferenceFileHasNoSkippedRows(t *testing.T) {
	t.Parallel()
	d, err := Load(referenceFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Report.Skipped != 0 || len(d.Properties) != d.Report.Rows || d.Report.Rows < 2000 {
		t.Errorf("report %+v", d.Report)
	}
	slugs := map[string]bool{}
	for _, tenant := range d.Tenants {
		if !id.Valid(id.Tenant, tenant.ID) || slugs[tenant.Slug] || len(tenant.Slug) > 63 {
			t.Errorf("tenant %s %s", tenant.ID, tenant.Slug)
		}
		slugs[tenant.Slug] = true
	}
	for _, p := range d.Properties {
		if !id.Valid(id.Property, p.ID) || p.CityName == "" || p.NightMicroUSD <= 0 {
			t.Errorf("property %+v", p)
		}
	}
	if c := d.City("fes"); c == nil || c.Name != "Fès" || c.Country != "MA" {
		t.Errorf("fes is %+v", c)
	}
	for text, city := range map[string]string{"MARRAKECH": "Marrakesh", "المدينة المنورة": "Medina", "Medina, KSA": "Medina", "rishikesh": "Rishīkesh"} {
		if c := d.City(text); c == nil || c.Name != city {
			t.Errorf("%s is %+v", text, c)
		}
	}
	for text, want := range map[string]Area{
		"maroc": {Country: "MA"}, "MA": {Country: "MA"}, "السعودية": {Country: "SA"}, "uttarakhand": {Country: "IN", Region: "Uttarakhand"},
	} {
		if a, ok := d.Area(text); !ok || a.Country != want.Country || a.Region != want.Region || len(a.Properties) == 0 {
			t.Errorf("%s is %s %s", text, a.Country, a.Region)
		}
	}
}

// referenceFile is the path of the reference accommodations, a file outside the repository.
func referenceFile(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SHARED_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(dir, "hotels", "osm-accommodations.jsonl")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no reference data:", err)
	}
	return path
}
