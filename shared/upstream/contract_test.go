package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const (
	kabulHotel  = "ppt_01KA2X5T7QJ0V3M8N4R6B9CWDE"
	otherHotel  = "ppt_01KA2X5T7QZZZZZZZZZZZZZZZ1"
	kabulTenant = "tnt_01K9ZZ0C4M7YF2H5T8P1A3VSXG"
	otherTenant = "tnt_01K9ZZ0C4M7YF2H5T8P1A3VSXH"
)

var caller = Caller{
	RequestID:   "req_01KA2X5T7QJ0V3M8N4R6B9CWDE",
	Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	Bucket:      "b7e23ec29af22b0b",
}

// exchanges has every method of the clients with the example responses of the contracts.
var exchanges = []struct {
	name, contract, operation, example string
	call                               func(context.Context, *Upstreams) (any, error)
}{
	{"a list", "search-aggregation", "querySearch", "kabul", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Search.Query(ctx, cityQuery())
	}},
	{"an empty list", "search-aggregation", "querySearch", "nothing", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Search.Query(ctx, cityQuery())
	}},
	{"a list around a point, all filters", "search-aggregation", "querySearch", "kabul", func(ctx context.Context, u *Upstreams) (any, error) {
		rating := 7.5
		q := cityQuery()
		q.Geo = Area{Mode: "point", Point: &Circle{34.5, 69.1, 10}}
		q.Filters = &Filters{
			PriceRange: &PriceRange{MinMinor: "100000", MaxMinor: "900000", Currency: "AFN"}, Amenities: []string{"wifi"}, StarRating: []int{3, 4},
			GuestRatingMin: &rating, PropertyType: []string{"hotel"}, CancellationFlexibility: "free", Neighbourhoods: []string{"شهر نو"},
		}
		return u.Search.Query(ctx, q)
	}},
	{"a map", "search-aggregation", "querySearch", "kabul", func(ctx context.Context, u *Upstreams) (any, error) {
		q := cityQuery()
		q.Kind, q.Page = Map, Page{Limit: 250}
		q.Geo = Area{Mode: "bounding-box", BoundingBox: &geo.Box{SwLat: 34.3, SwLng: 68.9, NeLat: 34.7, NeLng: 69.4}}
		return u.Search.Query(ctx, q)
	}},
	{"a hotel", "search-aggregation", "getHotel", "", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Search.Hotel(ctx, kabulHotel, "fa-AF", "AFN")
	}},
	{"availability of a hotel", "search-aggregation", "getAvailability", "", func(ctx context.Context, u *Upstreams) (any, error) {
		days, err := u.Search.Availability(ctx, decemberQuery())
		return map[string]any{"days": days}, err
	}},
	{"facets of a country", "search-aggregation", "getFacets", "", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Search.Facets(ctx, "AF", "", "fa-AF")
	}},
	{"facets of a region", "search-aggregation", "getFacets", "", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Search.Facets(ctx, "AF", "Herat & west", "fa-AF")
	}},
	{"rates of cards", "pricing", "previewQuotes", "cards", func(ctx context.Context, u *Upstreams) (any, error) {
		return quoteList(u.Pricing.Preview(ctx, quoteRequest(nil)))
	}},
	{"rates with a calendar", "pricing", "previewQuotes", "calendar", func(ctx context.Context, u *Upstreams) (any, error) {
		return quoteList(u.Pricing.Preview(ctx, quoteRequest(&CalendarSpan{From: day(1), Days: 7})))
	}},
	{"rates, all sold out", "pricing", "previewQuotes", "soldOut", func(ctx context.Context, u *Upstreams) (any, error) {
		return quoteList(u.Pricing.Preview(ctx, quoteRequest(nil)))
	}},
	{"a property", "property", "getProperty", "", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Property.Get(ctx, kabulHotel, "en")
	}},
	{"a brand", "theme-config", "getBrandPeek", "", func(ctx context.Context, u *Upstreams) (any, error) {
		return u.Theme.Brand(ctx, kabulTenant)
	}},
}

func TestContract_RequestsAndResponsesConform(t *testing.T) {
	for _, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			doc := loadContract(t, x.contract)
			want := contractExample(t, doc, x.operation, x.example)
			server := httptest.NewServer(validateExchange(t, doc, respondJSON(want)))
			defer server.Close()

			got, err := x.call(WithCaller(t.Context(), caller), newTestUpstreams(t, server.URL+"/", nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, got), compareOptions); diff != "" {
				t.Errorf("the client changed a valid response (- sent + got):\n%s", diff)
			}
		})
	}
}

// compareOptions ignores the coverage, which is returned as cells, and treats 10:49:00.000Z and
// 10:49:00Z as equal.
var compareOptions = cmp.Options{
	cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "coverage" }),
	cmp.Transformer("time", func(s string) string { return strings.Replace(s, ".000Z", "Z", 1) }),
}

func TestContract_EveryOperationIsExercised(t *testing.T) {
	used := map[string]bool{}
	for _, x := range exchanges {
		used[x.operation] = true
	}
	for _, name := range []string{"search-aggregation", "pricing", "property", "theme-config"} {
		for path, item := range loadContract(t, name).Paths.Map() {
			for method, op := range item.Operations() {
				if !used[op.OperationID] {
					t.Errorf("%s: no test of %s %s", name, method, path)
				}
			}
		}
	}
}

func TestContract_OptionalHeadersAreAbsent(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	newTestUpstreams(t, server.URL, nil).Theme.Brand(t.Context(), kabulTenant)
	for _, name := range []string{"Authorization", "X-Request-Id", "Traceparent", "X-User-Bucket", "X-Tenant-Id", "Accept-Encoding", "Idempotency-Key"} {
		if values, ok := seen[name]; ok {
			t.Errorf("header %s: got %q, want none", name, values)
		}
	}
}

// loadContract loads an OpenAPI document and validates the document with its examples.
func loadContract(t testing.TB, name string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("contracts/" + name + ".openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // the address of the test server is not in the document
	return doc
}

// contractExample returns the example body of an operation's 200 response.
func contractExample(t testing.TB, doc *openapi3.T, operation, name string) []byte {
	t.Helper()
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.OperationID != operation {
				continue
			}
			media := op.Responses.Value("200").Value.Content["application/json"]
			value := media.Example
			if name != "" {
				value = media.Examples[name].Value.Value
			}
			body, err := json.Marshal(value, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			return body
		}
	}
	t.Fatalf("no operation %s", operation)
	return nil
}

// validateExchange fails the test if a request or a response does not conform to the contract.
func validateExchange(t testing.TB, doc *openapi3.T, next http.Handler) http.Handler {
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true, IncludeResponseStatus: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		route, params, err := router.FindRoute(r)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			return
		}
		in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			t.Errorf("request: %v", err)
		}
		reportUndocumented(t, r, route)

		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: rec.Code, Header: rec.Header(), Options: options}
		out.SetBodyBytes(rec.Body.Bytes())
		if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
			t.Errorf("response: %v", err)
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
	})
}

// reportUndocumented reports violations ignored by the validator: undocumented query parameters and
// undocumented X- headers.
func reportUndocumented(t testing.TB, r *http.Request, route *routers.Route) {
	t.Helper()
	for name := range r.URL.Query() {
		if route.Operation.Parameters.GetByInAndName("query", name) == nil {
			t.Errorf("query parameter %q is not in the contract", name)
		}
	}
	for name := range r.Header {
		documented := route.Operation.Parameters.GetByInAndName("header", name) != nil || name == "Traceparent"
		if strings.HasPrefix(name, "X-") && !documented {
			t.Errorf("header %q is not in the contract", name)
		}
	}
}

func respondJSON(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}
}

// countRequests counts the requests that reach next.
func countRequests(n *atomic.Int32, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		next(w, r)
	}
}

// newTestUpstreams returns Upstreams with the same base URL for all services and the real time
// limits. Tests with real time limits do not run in parallel, because a busy machine might exceed
// the limits.
func newTestUpstreams(t testing.TB, base string, tokens TokenSource) *Upstreams {
	t.Helper()
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	u, err := New(Config{SearchURL: base, PricingURL: base, PropertyURL: base, ThemeURL: base, Tokens: tokens, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// asJSON converts a value or a JSON text to the generic types of JSON.
func asJSON(t testing.TB, v any) any {
	t.Helper()
	body, ok := v.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	var out any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func cityQuery() SearchQuery {
	return SearchQuery{
		Kind: List, Geo: Area{Mode: "city", City: "Kabul"}, Dates: stay.Dates{CheckIn: day(1), CheckOut: day(4)},
		Occupancy: stay.Occupancy{Adults: 2, Children: 1, Rooms: 1, ChildrenAges: []int{6}},
		SortKey:   "recommended", Locale: "fa-AF", Currency: "AFN", Page: Page{Limit: 20},
	}
}

func decemberQuery() AvailabilityQuery {
	return AvailabilityQuery{PropertyID: kabulHotel, From: day(1), To: day(31), Adults: 2, Rooms: 1}
}

func quoteRequest(span *CalendarSpan) QuoteRequest {
	return QuoteRequest{
		Properties: []PropertyRef{{kabulHotel, kabulTenant}, {otherHotel, otherTenant}},
		Dates:      stay.Dates{CheckIn: day(1), CheckOut: day(4)}, Occupancy: stay.Occupancy{Adults: 2, Rooms: 1},
		Currency: "AFN", Locale: "fa-AF", Calendar: span,
	}
}

func day(d int) stay.Date { return stay.Date{Year: 2026, Month: 12, Day: d} }

func quoteList(quotes map[string]Quote, err error) (any, error) {
	list := []Quote{}
	for _, q := range quotes {
		list = append(list, q)
	}
	return map[string]any{"quotes": list}, err
}
