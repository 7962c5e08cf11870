package web

import (
	"net/http/httptest"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestRejectQuery_RejectsAnyParameter(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                 "",
		"?":                "",
		"?limit=5":         "VALIDATION_FAILED limit unknown",
		"?limit=5&limit=6": "VALIDATION_FAILED limit unknown",
		"?a+b=1":           "VALIDATION_FAILED query unknown",
		"?=":               "VALIDATION_FAILED query unknown",
		"?a=%zz":           "MALFORMED_REQUEST query malformed",
	} {
		got := ""
		if err := RejectQuery(httptest.NewRequest("GET", "/"+query, nil)); err != nil {
			p := problem.FromError(err)
			got = p.Kind.Code + " " + p.Fields[0].Field + " " + p.Fields[0].Code
		}
		if got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

func TestParseLocale_ProblemListsSupportedValues(t *testing.T) {
	t.Parallel()
	_, locale := ParseLocale("locale", "de")
	_, currency := ParseCurrency("X-Currency", "afn")
	for err, want := range map[error]problem.FieldError{
		locale:   {Field: "locale", Code: "not-supported", Detail: "Must be one of en, ps-AF, fa-AF, fa-IR, tg-TJ, ar, ur-PK, ru, fr."},
		currency: {Field: "X-Currency", Code: "not-supported", Detail: "Must be one of AFN, USD, EUR, IRR, PKR, AED, GBP, in capital letters."},
	} {
		if p := problem.FromError(err); len(p.Fields) != 1 || p.Fields[0] != want || p.Kind.Status != 422 {
			t.Errorf("%v: %+v", err, p.Fields)
		}
	}
}
