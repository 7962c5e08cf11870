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

// canned is a transport that always brings the same body.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c)), Request: r}, nil
}

func answering(t testing.TB, body []byte) *Upstreams {
	t.Helper()
	u, err := New(Config{SearchURL: "https://s.test", PricingURL: "https://p.test", PropertyURL: "https://r.test", ThemeURL: "https://t.test", Transport: canned(body)})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

type absent struct{}

// with is body with the value at the path (names and indexes, dotted) replaced, or removed when it is absent{}.
func with(t testing.TB, body []byte, path string, value any) []byte {
	t.Helper()
	root := plain(t, body)
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
	case value == absent{}:
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

func kabul(t testing.TB) []byte {
	return example(t, contract(t, "search-aggregation"), "querySearch", "kabul")
}

var badTexts = []any{"", "  ", "two\nlines", "bell\a", strings.Repeat("و", maxName+1), nil, absent{}}

var badURLs = []any{
	"", "javascript:alert(1)", "data:image/png;base64,AA", "//img.test/x", "/x", "https://", "https:///x", "http://img.test/x", "ftp://img.test/x",
	"https://user:pw@img.test/x", "https://img.test/a b", "https://img.test/\"onload=", "https://img.test/<x>", "https://img.test\\@evil.test/",
	"https://img.test/\u202egnp.x", "https://img.test/" + strings.Repeat("x", maxURL), "https://[::1", "http://localhost.evil.test/x", nil, absent{},
}

func TestAHitWithABadMandatoryValueIsDropped(t *testing.T) {
	good := kabul(t)
	for path, values := range map[string][]any{
		"propertyId":    {"", "ppt_", "ppt_x", strings.ToLower(kabulHotel), kabulTenant, kabulHotel + " ", "ppt_81KA2X5T7QJ0V3M8N4R6B9CWDE", nil, absent{}},
		"tenantId":      {"", kabulHotel, "tnt_01K9ZZ0C4M7YF2H5T8P1A3VSX", nil, absent{}},
		"tenantSlug":    {"", "Bagh", "a.b", "a/b", "-a", "a-", "a_b", "بابر", strings.Repeat("a", 64), nil, absent{}},
		"name.default":  badTexts,
		"name":          {nil, absent{}, map[string]any{}},
		"city":          badTexts,
		"country":       {"", "af", "AFG", "A1", nil, absent{}},
		"geo.lat":       {91, -90.001},
		"geo.lng":       {181, -180.001},
		"thumbnail.url": badURLs,
		"thumbnail":     {nil, absent{}},
	} {
		for _, v := range values {
			got, err := answering(t, with(t, good, "hits.0."+path, v)).Search.Query(t.Context(), cityQuery())
			if err != nil {
				t.Errorf("%s %q: %v", path, v, err)
				continue
			}
			if len(got.Hits) != 1 || got.Hits[0].PropertyID != otherHotel {
				t.Errorf("%s %q: was shown", path, v)
			}
			if got.ResultCount != 41 {
				t.Errorf("%s %q: count %d", path, v, got.ResultCount)
			}
		}
	}
}

func TestABadOptionalValueIsLeftOut(t *testing.T) {
	good := kabul(t)
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
		{"amenityHighlights", absent{}, func(h Hit) any { return h.AmenityHighlights }, []string{}},
		{"badges", []any{"newProperty", "crossRegionDelivery", "madeUp"}, func(h Hit) any { return h.Badges }, []string{"newProperty"}},
		{"thumbnail.alt", "a\x00b", func(h Hit) any { return h.Thumbnail.Alt }, ""},
		{"name.localized", map[string]any{"fa-AF": "باغ", "x": "short tag", "en_US": "underscore", "ps": "", "ru": "\x1b[31m"},
			func(h Hit) any { return h.Name.Localized }, map[string]string{"fa-AF": "باغ"}},
	} {
		got, err := answering(t, with(t, good, "hits.0."+c.path, c.value)).Search.Query(t.Context(), cityQuery())
		if err != nil || len(got.Hits) != 2 {
			t.Errorf("%s %v: %d hits, %v", c.path, c.value, len(got.Hits), err)
			continue
		}
		if diff := cmp.Diff(c.want, c.of(got.Hits[0])); diff != "" {
			t.Errorf("%s %v:\n%s", c.path, c.value, diff)
		}
	}
}

func TestPicturesMayComeFromThisMachineWithoutTLS(t *testing.T) {
	for _, u := range []string{"http://localhost:8080/x.jpg", "http://127.0.0.1/x.jpg", "http://[::1]:80/x.jpg", "https://img.test/x.jpg?w=1#top", "HTTPS://img.test/%20"} {
		if !goodURL(u) {
			t.Errorf("%s was refused", u)
		}
	}
}

func TestAnAnswerOfAnotherShapeIsAFailure(t *testing.T) {
	good := kabul(t)
	for path, values := range map[string][]any{
		"resultCount":       {"41", 41.5, -1, nil, absent{}},
		"hits":              {nil, absent{}, map[string]any{}, "none"},
		"hits.0":            {"hit", 1, []any{}},
		"hits.0.propertyId": {5, []any{}},
		"hits.0.geo":        {"34,69"},
		"hits.0.geo.lat":    {"34.5"},
		"hits.0.starRating": {"4"},
		"hits.0.name":       {"Bagh-e Babur"},
		"place":             {"Kabul"},
		"coverage":          {"h3:8520905bfffffff", []any{1}},
	} {
		for _, v := range values {
			if _, err := answering(t, with(t, good, path, v)).Search.Query(t.Context(), cityQuery()); ReasonOf(err) != BadResponse {
				t.Errorf("%s = %v: %v", path, v, err)
			}
		}
	}
}

func TestNoUsableHitIsAFailureAndNotAnEmptyPage(t *testing.T) {
	bad := with(t, with(t, kabul(t), "hits.0.propertyId", "x"), "hits.1.thumbnail.url", "x")
	if _, err := answering(t, bad).Search.Query(t.Context(), cityQuery()); ReasonOf(err) != BadResponse {
		t.Error(err)
	}
}

func TestAPropertyIsShownOnce(t *testing.T) {
	twice := with(t, kabul(t), "hits.1.propertyId", kabulHotel)
	got, err := answering(t, twice).Search.Query(t.Context(), cityQuery())
	if err != nil || len(got.Hits) != 1 || got.Hits[0].TenantID != kabulTenant {
		t.Errorf("%+v %v", got.Hits, err)
	}
}

func TestAPageIsNoLongerThanAsked(t *testing.T) {
	q := cityQuery()
	q.Page = Page{Limit: 1, Offset: 60}
	got, err := answering(t, kabul(t)).Search.Query(t.Context(), q)
	if err != nil || len(got.Hits) != 1 || got.ResultCount != 61 {
		t.Errorf("%d hits, count %d, %v", len(got.Hits), got.ResultCount, err)
	}
	if limitOf(Page{}) != maxHits || limitOf(Page{Limit: 1000}) != maxHits {
		t.Error("there is always a limit")
	}
}

func TestCoverageIsAllOrNothing(t *testing.T) {
	good := kabul(t)
	got, err := answering(t, good).Search.Query(t.Context(), cityQuery())
	if err != nil || len(got.Coverage) != 1 || got.Coverage[0].String() != "h3:8520905bfffffff" {
		t.Errorf("%v %v", got.Coverage, err)
	}
	const fine = "h3:8920905a28fffff" // resolution 9
	for _, list := range [][]any{
		{"h3:8520905bfffffff", "h3:nonsense"}, {"h3:8520905bfffffff", fine}, {},
		slices.Repeat([]any{"h3:8520905bfffffff"}, maxCoverage+1),
	} {
		got, err := answering(t, with(t, good, "coverage", list)).Search.Query(t.Context(), cityQuery())
		if err != nil || got.Coverage != nil {
			t.Errorf("%v: %v %v", list, got.Coverage, err)
		}
	}
}

func TestWhatIsPassedOnUnreadIsSmall(t *testing.T) {
	good := kabul(t)
	for _, v := range []any{nil, absent{}, strings.Repeat("x", maxJSON)} {
		got, err := answering(t, with(t, with(t, good, "queryRewriteHint", v), "aiProvenance", v)).Search.Query(t.Context(), cityQuery())
		if err != nil || got.QueryRewriteHint != nil || got.AIProvenance != nil {
			t.Errorf("%.20v: %.20s %v", v, got.QueryRewriteHint, err)
		}
	}
	got, err := answering(t, with(t, good, "queryRewriteHint", []any{1})).Search.Query(t.Context(), cityQuery())
	if err != nil || !slices.Equal(got.QueryRewriteHint, jsontext.Value("[1]")) {
		t.Errorf("%s %v", got.QueryRewriteHint, err)
	}
}

func TestAPlaceLosesWhatCannotBeShown(t *testing.T) {
	good := kabul(t)
	for _, c := range []struct {
		sent any
		want *Place
	}{
		{map[string]any{"city": "Herat", "country": "Afghanistan"}, &Place{City: "Herat"}},
		{map[string]any{"city": "a\x00", "region": strings.Repeat("r", 201), "country": "AF"}, &Place{Country: "AF"}},
		{map[string]any{"country": "?"}, nil},
		{absent{}, nil},
	} {
		got, err := answering(t, with(t, good, "place", c.sent)).Search.Query(t.Context(), cityQuery())
		if diff := cmp.Diff(c.want, got.Place); err != nil || diff != "" {
			t.Errorf("%v: %v\n%s", c.sent, err, diff)
		}
	}
}
