package web

import (
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// ParseLocale reads a language that a request names outright, in that field. Outside the platform's set it is
// LocaleNotSupported, which says what is in it.
func ParseLocale(field, s string) (locale.Tag, error) {
	tag, err := locale.Parse(s)
	if err != nil {
		return "", notSupported(problem.LocaleNotSupported, field, "Must be one of "+joinValues(locale.Supported())+".", err)
	}
	return tag, nil
}

// ParseCurrency is Locale for a currency, which is CurrencyNotSupported.
func ParseCurrency(field, s string) (money.Currency, error) {
	c, err := money.Parse(s)
	if err != nil {
		return "", notSupported(problem.CurrencyNotSupported, field, CurrencyDetail, err)
	}
	return c, nil
}

// CurrencyDetail tells a guest which currencies there are.
var CurrencyDetail = "Must be one of " + joinValues(money.Supported()) + ", in capital letters."

func notSupported(kind problem.Kind, field, detail string, cause error) error {
	p := problem.New(kind, "See errors for the value that is not supported.", cause)
	p.Fields = []problem.FieldError{{Field: field, Code: "not-supported", Detail: detail}}
	return p
}

func joinValues[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
