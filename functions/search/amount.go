package search

import (
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// amount is a price in minor units, decoded from a decimal string or a whole JSON number; never
// negative. The platform's model writes the bounds of a price range as numbers without a unit,
// while every amount of this API is a string of minor units (docs/spec/routes.md#values). Both
// forms are accepted so that no client has to guess. A client that sends major units finds no hotel
// in its range; the OpenAPI document states the unit.
type amount struct{ value money.Minor }

// UnmarshalJSONFrom decodes either form. Any other token, a negative number and a number of more
// than 18 digits are the FieldError "malformed"; invalid JSON is the decoder's error. a is
// unchanged after an error.
func (a *amount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	malformed := problem.FieldError{Code: "malformed", Detail: "Must be whole minor units that are not negative, as a decimal string."}
	if kind := token.Kind(); kind != '"' && kind != '0' {
		return malformed
	}
	value, err := money.ParseMinor(token.String())
	if err != nil || value[0] == '-' {
		return malformed
	}
	a.value = value
	return nil
}
