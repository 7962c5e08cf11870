package upstream

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// cannedTransport is a RoundTripper that always returns the same body.
type cannedTransport []byte

func (c cannedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c)), Request: r}, nil
}

func newCannedUpstreams(t testing.TB, body []byte) *Upstreams {
	t.Helper()
	u, err := New(Config{SearchURL: "https://s.test", PricingURL: "https://p.test", PropertyURL: "https://r.test", ThemeURL: "https://t.test", Transport: cannedTransport(body)})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// removed is a value for withValue that removes the member.
type removed struct{}

// withValue returns body with the value at a path (member names and indexes, dotted) replaced, or
// removed for removed{}.
func withValue(t testing.TB, body []byte, path string, value any) []byte {
	t.Helper()
	root := asJSON(t, body)
	at := root
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		if i, err := strconv.Atoi(step); err == nil {
			at = at.([]any)[i]
		} else {
			at = at.(map[string]any)[step]
		}
	}
	last := steps[len(steps)-1]
	switch object, ok := at.(map[string]any); {
	case !ok:
		i, _ := strconv.Atoi(last)
		at.([]any)[i] = value
	case value == removed{}:
		delete(object, last)
	default:
		object[last] = value
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func searchExample(t testing.TB) []byte {
	return contractExample(t, loadContract(t, "search-aggregation"), "querySearch", "kabul")
}

var invalidTexts = []any{"", "  ", "two\nlines", "bell\a", strings.Repeat("و", maxName+1), nil, removed{}}

var invalidURLs = []any{
	"", "javascript:alert(1)", "data:image/png;base64,AA", "//img.test/x", "/x", "https://", "https:///x", "http://img.test/x", "ftp://img.test/x",
	"https://user:pw@img.test/x", "https://img.test/a b", "https://img.test/\"onload=", "https://img.test/<x>", "https://img.test\\@evil.test/",
	"https://img.test/\u202egnp.x", "https://img.test/" + strings.Repeat("x", maxURL), "https://[::1", "http://localhost.evil.test/x", nil, removed{},
}

func TestQuery_DropsHitWithInvalidMandatoryValue(t *testing.T) {
	good := searchExample(t)
	for path, values := range map[string][]any{
		"propertyId":    {"", "ppt_", "ppt_x", strings.ToLower(kabulHotel), kabulTenant, kabulHotel + " ", "ppt_81KA2X5T7QJ0V3M8N4R6B9CWDE", nil, removed{}},
		"tenantId":      {"", kabulHotel, "tnt_01K9ZZ0C4M7YF2H5T8P1A3VSX", nil, removed{}},
		"tenantSlug":    {"", "Bagh", "a.b", "a/b", "-a", "a-", "a_b", "بابر", strings.Repeat("a", 64), nil, removed{}},
		"name.default":  invalidTexts,
		"name":          {nil, removed{}, map[string]any{}},
		"city":          invalidTexts,
		"country":       {"", "af", "AFG", "A1", nil, removed{}},
		"geo.lat":       {91, -90.001},
		"geo.lng":       {181, -180.001},
		"thumbnail.url": invalidURLs,
		"thumbnail":     {nil, removed{}},
	} {
		t.Run(path, func(t *testing.T) {
			for _, v := range values {
				got, err := newCannedUpstreams(t, withValue(t, good, "hits.0."+path, v)).Search.Query(t.Context(), cityQuery())
				if err != nil {
					t.Errorf("value %q: got error %v", v, err)
					continue
				}
				if len(got.Hits) != 1 || got.Hits[0].PropertyID != otherHotel {
					t.Errorf("value %q: got %d hits, want only the other hit", v, len(got.Hits))
				}
				if got.ResultCount != 41 {
					t.Errorf("value %q: got count %d, want 41", v, got.ResultCount)
				}
			}
		})
	}
}

func TestQuery_OmitsInvalidOptionalValue(t *testing.T) {
	good := searchExample(t)
	rating := func(h Hit) any { return h.GuestRating }
	distance := func(h Hit) any { return h.DistanceKm }
	for _, c := range []struct {
		path  string
		value any
		of    func(Hit) any
		want  any
	}{
		{"starRating", 5.5, func(h Hit) any { return h.StarRating }, 0.0},
		{"starRating", -1, func(h Hit) any { return h.StarRating }, 0.0},
		{"starRating", nil, func(h Hit) any { return h.StarRating }, 0.0},
		{"guestRating", map[string]any{"value": 10.1, "count": 1}, rating, (*Rating)(nil)},
		{"guestRating", map[string]any{"value": 9, "count": -1}, rating, (*Rating)(nil)},
		{"distanceKm", -0.1, distance, (*float64)(nil)},
		{"distanceKm", 40_000, distance, (*float64)(nil)},
		{"servingRegion", "<b>", func(h Hit) any { return h.ServingRegion }, ""},
		{"amenityHighlights", []any{"wifi", "", "a b", "<i>", strings.Repeat("a", 65), "spa"}, func(h Hit) any { return h.AmenityHighlights }, []string{"wifi", "spa"}},
		{"amenityHighlights", removed{}, func(h Hit) any { return h.AmenityHighlights }, []string{}},
		{"badges", []any{"newProperty", "crossRegionDelivery", "madeUp"}, func(h Hit) any { return h.Badges }, []string{"newProperty"}},
		{"thumbnail.alt", "a\x00b", func(h Hit) any { return h.Thumbnail.Alt }, ""},
		{"name.localized", map[string]any{"fa-AF": "باغ", "x": "short tag", "en_US": "underscore", "ps": "", "ru": "\x1b[31m"},
			func(h Hit) any { return h.Name.Localized }, map[string]string{"fa-AF": "باغ"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			got, err := newCannedUpstreams(t, withValue(t, good, "hits.0."+c.path, c.value)).Search.Query(t.Context(), cityQuery())
			if err != nil || len(got.Hits) != 2 {
				t.Errorf("value %v: got %d hits, %v, want 2", c.value, len(got.Hits), err)
				return
			}
			if diff := cmp.Diff(c.want, c.of(got.Hits[0])); diff != "" {
				t.Errorf("value %v (- want + got):\n%s", c.value, diff)
			}
		})
	}
}

func TestQuery_AllowsLoopbackImagesWithoutTLS(t *testing.T) {
	for _, u := range []string{"http://localhost:8080/x.jpg", "http://127.0.0.1/x.jpg", "http://[::1]:80/x.jpg", "https://img.test/x.jpg?w=1#top", "HTTPS://img.test/%20"} {
		if !validURL(u) {
			t.Errorf("validURL rejects %s", u)
		}
	}
}

func TestQuery_MalformedResponseFails(t *testing.T) {
	good := searchExample(t)
	for path, values := range map[string][]any{
		"resultCount":       {"41", 41.5, -1, nil, removed{}},
		"hits":              {nil, removed{}, map[string]any{}, "none"},
		"hits.0":            {"hit", 1, []any{}},
		"hits.0.propertyId": {5, []any{}},
		"hits.0.geo":        {"34,69"},
		"hits.0.geo.lat":    {"34.5"},
		"hits.0.starRating": {"4"},
		"hits.0.name":       {"Bagh-e Babur"},
		"place":             {"Kabul"},
		"coverage":          {"h3:8520905bfffffff", []any{1}},
	} {
		t.Run(path, func(t *testing.T) {
			for _, v := range values {
				if _, err := newCannedUpstreams(t, withValue(t, good, path, v)).Search.Query(t.Context(), cityQuery()); ReasonOf(err) != BadResponse {
					t.Errorf("value %v: got %v, want bad-response", v, err)
				}
			}
		})
	}
}

func TestQuery_NoUsableHitFails(t *testing.T) {
	bad := withValue(t, withValue(t, searchExample(t), "hits.0.propertyId", "x"), "hits.1.thumbnail.url", "x")
	if _, err := newCannedUpstreams(t, bad).Search.Query(t.Context(), cityQuery()); ReasonOf(err) != BadResponse {
		t.Errorf("got %v, want bad-response", err)
	}
}

func TestQuery_HitsAreUniqueByProperty(t *testing.T) {
	duplicate := withValue(t, searchExample(t), "hits.1.propertyId", kabulHotel)
	got, err := newCannedUpstreams(t, duplicate).Search.Query(t.Context(), cityQuery())
	if err != nil || len(got.Hits) != 1 || got.Hits[0].TenantID != kabulTenant {
		t.Errorf("got hits %+v, %v, want the first of two", got.Hits, err)
	}
}

func TestQuery_LimitsHitsToRequestedPage(t *testing.T) {
	q := cityQuery()
	q.Page = Page{Limit: 1, Offset: 60}
	got, err := newCannedUpstreams(t, searchExample(t)).Search.Query(t.Context(), q)
	if err != nil || len(got.Hits) != 1 || got.ResultCount != 61 {
		t.Errorf("got %d hits, count %d, %v, want 1 and 61", len(got.Hits), got.ResultCount, err)
	}
	if pageLimit(Page{}) != maxHits || pageLimit(Page{Limit: 1000}) != maxHits {
		t.Errorf("got page limits %d and %d, want %d", pageLimit(Page{}), pageLimit(Page{Limit: 1000}), maxHits)
	}
}

func TestQuery_CoverageIsAllOrNothing(t *testing.T) {
	good := searchExample(t)
	got, err := newCannedUpstreams(t, good).Search.Query(t.Context(), cityQuery())
	if err != nil || len(got.Coverage) != 1 || got.Coverage[0].String() != "h3:8520905bfffffff" {
		t.Errorf("got coverage %v, %v, want one cell", got.Coverage, err)
	}
	const fine = "h3:8920905a28fffff" // resolution 9
	for _, list := range [][]any{
		{"h3:8520905bfffffff", "h3:nonsense"}, {"h3:8520905bfffffff", fine}, {},
		slices.Repeat([]any{"h3:8520905bfffffff"}, maxCoverage+1),
	} {
		got, err := newCannedUpstreams(t, withValue(t, good, "coverage", list)).Search.Query(t.Context(), cityQuery())
		if err != nil || got.Coverage != nil {
			t.Errorf("coverage %v: got %v, %v, want none", list, got.Coverage, err)
		}
	}
}

func TestQuery_PassthroughJSONIsBounded(t *testing.T) {
	good := searchExample(t)
	for _, v := range []any{nil, removed{}, strings.Repeat("x", maxJSON)} {
		got, err := newCannedUpstreams(t, withValue(t, withValue(t, good, "queryRewriteHint", v), "aiProvenance", v)).Search.Query(t.Context(), cityQuery())
		if err != nil || got.QueryRewriteHint != nil || got.AIProvenance != nil {
			t.Errorf("value %.20v: got %.20s, %v, want none", v, got.QueryRewriteHint, err)
		}
	}
	got, err := newCannedUpstreams(t, withValue(t, good, "queryRewriteHint", []any{1})).Search.Query(t.Context(), cityQuery())
	if err != nil || !slices.Equal(got.QueryRewriteHint, jsontext.Value("[1]")) {
		t.Errorf("got %s, %v, want [1]", got.QueryRewriteHint, err)
	}
}

func TestQuery_OmitsInvalidPlaceValues(t *testing.T) {
	good := searchExample(t)
	for _, c := range []struct {
		sent any
		want *Place
	}{
		{map[string]any{"city": "Herat", "country": "Afghanistan"}, &Place{City: "Herat"}},
		{map[string]any{"city": "a\x00", "region": strings.Repeat("r", 201), "country": "AF"}, &Place{Country: "AF"}},
		{map[string]any{"country": "?"}, nil},
		{removed{}, nil},
	} {
		got, err := newCannedUpstreams(t, withValue(t, good, "place", c.sent)).Search.Query(t.Context(), cityQuery())
		if diff := cmp.Diff(c.want, got.Place); err != nil || diff != "" {
			t.Errorf("place %v: error %v (- want + got):\n%s", c.sent, err, diff)
		}
	}
}
