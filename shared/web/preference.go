package web

import (
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Locale reads a language that a request names outright, in that field. Outside the platform's set it is
// LocaleNotSupported, which says what is in it.
func Locale(field, s string) (locale.Tag, error) {
	tag, err := locale.Parse(s)
	if err != nil {
		return "", notSupported(problem.LocaleNotSupported, field, "Must be one of "+list(locale.Supported())+".", err)
	}
	return tag, nil
}

// Currency is Locale for a currency, which is CurrencyNotSupported.
func Currency(field, s string) (money.Currency, error) {
	c, err := money.Parse(s)
	if err != nil {
		return "", notSupported(problem.CurrencyNotSupported, field, Currencies, err)
	}
	return c, nil
}

// Currencies tells a guest which currencies there are.
var Currencies = "Must be one of " + list(money.Supported()) + ", in capital letters."

func notSupported(kind problem.Kind, field, detail string, cause error) error {
	p := problem.New(kind, "See errors for the value that is not supported.", cause)
	p.Fields = []problem.Field{{Field: field, Code: "not-supported", Detail: detail}}
	return p
}

func list[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
