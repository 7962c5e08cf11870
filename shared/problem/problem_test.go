package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

func TestCatalogue_HasEveryKindWithItsStatus(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"VALIDATION_FAILED": 422, "MALFORMED_REQUEST": 400, "PAYLOAD_TOO_LARGE": 413, "RESOURCE_NOT_FOUND": 404,
		"METHOD_NOT_ALLOWED": 405, "LOCALE_NOT_SUPPORTED": 422, "CURRENCY_NOT_SUPPORTED": 422, "WISHLIST_LIMIT_EXCEEDED": 422,
		"IDEMPOTENCY_KEY_REQUIRED": 400, "IDEMPOTENCY_KEY_REUSED": 422, "IDEMPOTENCY_IN_PROGRESS": 409,
		"HANDOFF_REPLAYED": 409, "HANDOFF_EXPIRED": 410, "HANDOFF_SIGNATURE_INVALID": 401, "HANDOFF_NOT_FOUND": 404,
		"TENANT_SUSPENDED": 403, "CALLER_NOT_ALLOWED": 403, "SUSPECTED_BOT": 429, "RATE_LIMITED": 429,
		"UPSTREAM_BUDGET_EXCEEDED": 504, "UPSTREAM_UNAVAILABLE": 503, "INTERNAL": 500,
	}
	for _, k := range Catalogue() {
		if status, ok := want[k.Code]; !ok || status != k.Status {
			t.Errorf("%s has status %d, want %d", k.Code, k.Status, status)
		}
		delete(want, k.Code)
		if k.Title == "" {
			t.Errorf("%s has no title", k.Code)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the catalogue: %v", want)
	}
}

func TestWrite_WireFormat(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	err := fmt.Errorf("search: %w", Invalid(FieldError{"dates.checkIn", "past", "The day is past."}).WithRetryAfter(1500*time.Millisecond))
	p := Write(w, Occurrence{"/bff/consumer/v1/search", "req_1", "trace"}, err)
	if p.Kind != ValidationFailed || w.Code != 422 {
		t.Fatalf("%s with status %d", p.Kind.Code, w.Code)
	}
	const want = `{"type":"https://errors.melmastoon.ghasi.io/bff/consumer/validation-failed","title":"The request has invalid values.",` +
		`"status":422,"detail":"See errors for the fields that need attention.","instance":"/bff/consumer/v1/search",` +
		`"code":"MELMASTOON.BFF.CONSUMER.VALIDATION_FAILED","errors":[{"field":"dates.checkIn","code":"past","detail":"The day is past."}],` +
		`"traceId":"trace","requestId":"req_1","retriable":false,"retryAfter":2,"userMessageKey":"errors.bff.consumer.validation_failed",` +
		`"docUrl":"https://errors.melmastoon.ghasi.io/bff/consumer/validation-failed"}`
	if got := w.Body.String(); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Retry-After": "2", "Content-Length": fmt.Sprint(len(want)),
	} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func TestWrite_EmptyMembersArePresent(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Write(w, Occurrence{}, New(ResourceNotFound, "No such hotel.", nil))
	if body := w.Body.String(); !strings.Contains(body, `"errors":[]`) || !strings.Contains(body, `"retryAfter":null`) {
		t.Errorf("body %s", body)
	}
	if w.Header().Get("Retry-After") != "" {
		t.Error("Retry-After without retryAfter")
	}
}

func TestWrite_DropsCacheAndCookieHeaders(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	for _, name := range droppedHeaders {
		w.Header().Set(name, "x")
	}
	w.Header().Set("Cache-Control", "public, max-age=15")
	w.Header().Set("Allow", "GET")
	w.Header().Set("RateLimit-Limit", "120")
	Write(w, Occurrence{}, New(MethodNotAllowed, "", nil))
	for _, name := range droppedHeaders {
		if got := w.Header().Get(name); got == "x" {
			t.Errorf("%s was kept", name)
		}
	}
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Allow") != "GET" || w.Header().Get("RateLimit-Limit") != "120" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestProblemWithExtension_AddsTopLevelMembers(t *testing.T) {
	t.Parallel()
	plain := New(SuspectedBot, "", nil)
	p := plain.WithExtension("challenge", map[string]string{"kind": "recaptcha"}).WithExtension("siteKey", "k")
	w := httptest.NewRecorder()
	Write(w, Occurrence{}, p)
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["siteKey"] != "k" || got["challenge"].(map[string]any)["kind"] != "recaptcha" {
		t.Errorf("body %s", w.Body)
	}
	if plain.Extensions != nil {
		t.Error("With changed the problem it was called on")
	}
}

func TestWrite_UnencodableMembersFallBackToCatalogue(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*Problem{
		"extension": New(RateLimited, "", nil).WithExtension("x", func() {}),
		"detail":    New(RateLimited, "\xff", nil),
		"duplicate": New(RateLimited, "", nil).WithExtension("status", 200),
	} {
		w := httptest.NewRecorder()
		Write(w, Occurrence{}, p)
		if w.Code != 429 || !strings.Contains(w.Body.String(), `"code":"MELMASTOON.BFF.CONSUMER.RATE_LIMITED"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestFromError_MapsErrorsToKinds(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.3: refused")
	for _, c := range []struct {
		err  error
		want Kind
	}{
		{fmt.Errorf("a: %w", New(RateLimited, "", secret)), RateLimited},
		{fmt.Errorf("a: %w", context.DeadlineExceeded), UpstreamBudgetExceeded},
		{New(UpstreamUnavailable, "", context.DeadlineExceeded), UpstreamUnavailable},
		{secret, Internal},
	} {
		p := FromError(c.err)
		if p.Kind != c.want {
			t.Errorf("%v is %s, want %s", c.err, p.Kind.Code, c.want.Code)
		}
		w := httptest.NewRecorder()
		Write(w, Occurrence{}, c.err)
		if strings.Contains(w.Body.String(), "10.0.0.3") {
			t.Errorf("the cause reached the guest: %s", w.Body)
		}
	}
	if FromError(nil) != nil {
		t.Error("nil is not nil")
	}
	if p := FromError(secret); !errors.Is(p, secret) || !strings.Contains(p.Error(), "10.0.0.3") {
		t.Errorf("the log does not see the cause: %v", p)
	}
}

func TestProblemError_NamesAFewFieldsWithoutValues(t *testing.T) {
	t.Parallel()
	fields := make([]FieldError, 100)
	for i := range fields {
		fields[i] = FieldError{fmt.Sprintf("f%d", i), "required", "Say it."}
	}
	fields[2] = FieldError{"+93 70 000 0000", UnknownField, "Leave it out."}
	if got := Invalid(fields...).Error(); strings.Contains(got, "+93") || !strings.HasPrefix(got, "VALIDATION_FAILED f0 required f1 required") || len(got) > 150 {
		t.Errorf("logged %q", got)
	}
}
