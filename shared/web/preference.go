package web

import (
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// ParseLocale reads the locale in a field of a request, in upper or lower case. It returns "" and a
// LocaleNotSupported problem, with the list of supported locales, for any other text, the empty
// text included. CPU only.
func ParseLocale(field, s string) (locale.Tag, error) {
	tag, err := locale.Parse(s)
	if err != nil {
		return "", notSupported(problem.LocaleNotSupported, field, "Must be one of "+joinValues(locale.Supported())+".", err)
	}
	return tag, nil
}

// ParseCurrency reads the currency in a field of a request, upper case only. It returns "" and a
// CurrencyNotSupported problem, with the list of supported currencies, for any other text, the
// empty text included. CPU only.
func ParseCurrency(field, s string) (money.Currency, error) {
	c, err := money.Parse(s)
	if err != nil {
		return "", notSupported(problem.CurrencyNotSupported, field, CurrencyDetail, err)
	}
	return c, nil
}

// CurrencyDetail tells a guest the supported currencies.
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
