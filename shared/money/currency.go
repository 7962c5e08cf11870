// Package money owns the supported currencies and the text form of amounts: minor units as decimal
// text. It never computes or converts amounts; prices come from pricing unchanged. All functions
// are pure, safe for concurrent use, and cost only CPU and memory.
package money

import (
	"errors"
	"slices"
)

// Currency is a supported ISO 4217 code, upper case.
type Currency string

// The supported currencies.
const (
	AFN Currency = "AFN"
	USD Currency = "USD"
	EUR Currency = "EUR"
	IRR Currency = "IRR"
	PKR Currency = "PKR"
	AED Currency = "AED"
	GBP Currency = "GBP"
)

// ErrNotSupported is the error for an unsupported code.
var ErrNotSupported = errors.New("money: currency not supported")

var supported = []Currency{AFN, USD, EUR, IRR, PKR, AED, GBP}

// Supported returns a copy of the list of supported currencies.
func Supported() []Currency { return slices.Clone(supported) }

// Parse returns the supported currency with the code s, upper case only; otherwise "" and
// ErrNotSupported, also for other currencies of ISO 4217.
func Parse(s string) (Currency, error) {
	if c := Currency(s); slices.Contains(supported, c) {
		return c, nil
	}
	return "", ErrNotSupported
}

// ForCountry returns the currency for a guest without a choice, by the upper-case ISO 3166-1
// alpha-2 code of the request's country. Any other text gives the default, USD.
func ForCountry(iso2 string) Currency {
	switch iso2 {
	case "AF":
		return AFN
	case "IR":
		return IRR
	case "PK":
		return PKR
	case "AE":
		return AED
	case "GB":
		return GBP
	case "AT", "BE", "BG", "CY", "DE", "EE", "ES", "FI", "FR", "GR", "HR", "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PT", "SI", "SK":
		return EUR
	}
	return USD
}
