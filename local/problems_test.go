package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// apiOperation is an operation of the public API document.
type apiOperation struct {
	method string
	*openapi3.Operation
}

func apiOperations(t *testing.T) (all []apiOperation) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join("..", "api", "consumer.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, apiOperation{method, op})
		}
	}
	return all
}

// The common problems come from web.Serve and not from a handler: the request is too large or
// malformed or takes too long, a store or an instance is unavailable, the code has a bug.
func TestAPIDocument_ListsCommonProblemsForEveryRoute(t *testing.T) {
	for _, op := range apiOperations(t) {
		kinds := []problem.Kind{
			problem.MalformedRequest, problem.PayloadTooLarge, problem.ValidationFailed,
			problem.RateLimited, problem.Internal, problem.UpstreamUnavailable, problem.UpstreamBudgetExceeded,
		}
		if op.method != http.MethodGet {
			kinds = append(kinds, problem.CallerNotAllowed) // cross-origin request
		}
		for _, kind := range kinds {
			if op.Responses.Status(kind.Status) == nil {
				t.Errorf("%s can respond with %d, which the API document does not list", op.OperationID, kind.Status)
			}
		}
	}
}

// The test sends every route invalid requests that all routes reject alike. Call validates the
// responses against the API document.
func TestRoutes_RejectInvalidRequestsUniformly(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	const property, tenant = "ppt_00000000000000000000000009", "tnt_00000000000000000000000009"
	table := servertest.RouteRequests(property, tenant)
	for _, op := range apiOperations(t) {
		good := table[op.OperationID]
		url := s.URL + web.BasePath + good.Path
		with := func(parameter string) string {
			if strings.Contains(url, "?") {
				return url + "&" + parameter
			}
			return url + "?" + parameter
		}
		expect := func(what, url, body, want string, headers ...string) {
			t.Helper()
			res, answer := servertest.Call(t, op.method, url, body, append(headers, "Idempotency-Key", "rejected")...)
			if got := problemSummary(res, answer); got != want {
				t.Errorf("%s, %s: %s, want %s", op.OperationID, what, got, want)
			}
		}
		expect("large headers", url, good.Body, "413 PAYLOAD_TOO_LARGE", "X-Client-Screen", strings.Repeat("x", web.MaxHeader))
		expect("a broken query", with("a=%zz"), good.Body, "400 MALFORMED_REQUEST query malformed")
		expect("an unknown parameter", with("no-such=1"), good.Body, "422 VALIDATION_FAILED no-such unknown")
		if op.RequestBody != nil {
			expect("a large body", url, `"`+strings.Repeat("x", web.MaxBody)+`"`, "413 PAYLOAD_TOO_LARGE body too-large")
			expect("an unknown field", url, `{"no-such":1}`, "422 VALIDATION_FAILED no-such unknown")
		}
		if missing := requiredFields(op); missing != "" {
			bare, _, _ := strings.Cut(url, "?")
			expect("no required field", bare, "{}", "422 VALIDATION_FAILED"+missing)
		}
		checkUnknownMethod(t, op.OperationID, url)
	}
}

// problemSummary returns the status and code of a problem, and its invalid fields with their codes,
// sorted.
func problemSummary(res *http.Response, answer map[string]any) string {
	code, _ := answer["code"].(string)
	fields := []string{fmt.Sprint(res.StatusCode, " ", code[strings.LastIndexByte(code, '.')+1:])}
	errors, _ := answer["errors"].([]any)
	for _, e := range errors {
		field := e.(map[string]any)
		fields = append(fields, fmt.Sprint(field["field"], " ", field["code"]))
	}
	slices.Sort(fields[1:])
	return strings.Join(fields, " ")
}

// requiredFields returns the fields that the API document requires of an operation, in the form of
// problemSummary.
func requiredFields(op apiOperation) string {
	var missing []string
	for _, p := range op.Parameters {
		if p.Value.In == openapi3.ParameterInQuery && p.Value.Required {
			missing = append(missing, p.Value.Name)
		}
	}
	if op.RequestBody != nil {
		schema := op.RequestBody.Value.Content.Get("application/json").Schema.Value
		missing = append(missing, requiredLeaves("", schema)...)
		if schema.MinProps > 0 {
			missing = append(missing, "body")
		}
	}
	slices.Sort(missing)
	text := ""
	for _, field := range missing {
		text += " " + field + " required"
	}
	return text
}

// requiredLeaves returns the required values of an object, those of its required objects included.
func requiredLeaves(path string, schema *openapi3.Schema) (all []string) {
	if len(schema.OneOf) > 0 {
		schema = schema.OneOf[0].Value
	}
	for _, name := range schema.Required {
		if inner := schema.Properties[name].Value; len(inner.Required) > 0 {
			all = append(all, requiredLeaves(path+name+".", inner)...)
		} else {
			all = append(all, path+name)
		}
	}
	return all
}

// checkUnknownMethod sends PATCH, which no path has, so Call cannot validate the response.
func checkUnknownMethod(t *testing.T, name, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("PATCH %s: %d, %v; want 405 with Allow", name, res.StatusCode, res.Header)
	}
}
