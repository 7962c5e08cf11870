package search

import (
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// amount is a price in minor units, from a decimal string or a whole JSON number; never negative.
// The platform's model writes the bounds of a price range as numbers without a unit; here every
// amount is a string of minor units (docs/spec/routes.md#values). Accepting both costs this type, and no client
// has to guess. A client that sends major units finds no hotel in its range; the OpenAPI document
// states the unit.
type amount struct{ value money.Minor }

// UnmarshalJSONFrom reads either form.
func (a *amount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	wrong := problem.FieldError{Code: "malformed", Detail: "Must be whole minor units that are not negative, as a decimal string."}
	if kind := token.Kind(); kind != '"' && kind != '0' {
		return wrong
	}
	value, err := money.ParseMinor(token.String())
	if err != nil || value[0] == '-' {
		return wrong
	}
	a.value = value
	return nil
}
