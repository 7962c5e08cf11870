// Package money owns currencies and how amounts are written: minor units as decimal text.
// It never computes an amount and never converts one; prices are passed through from pricing.
package money

import (
	"errors"
	"slices"
)

// Currency is one of the supported ISO 4217 codes, upper case.
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

// ErrNotSupported is returned for a code outside the set.
var ErrNotSupported = errors.New("money: currency not supported")

var supported = []Currency{AFN, USD, EUR, IRR, PKR, AED, GBP}

// Supported returns the set.
func Supported() []Currency { return slices.Clone(supported) }

// Parse accepts a member of the set, upper case only.
func Parse(s string) (Currency, error) {
	if c := Currency(s); slices.Contains(supported, c) {
		return c, nil
	}
	return "", ErrNotSupported
}

// ForCountry is the currency a guest is shown who chose none: by the ISO 3166-1 alpha-2 code of where the request came
// from.
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
