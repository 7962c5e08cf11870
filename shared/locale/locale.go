// Package locale owns the supported languages and matches an Accept-Language header. It never
// translates, never reads a request and does no I/O.
package locale

import (
	"errors"
	"slices"
	"strings"
)

// Tag is a supported BCP 47 tag in canonical spelling.
type Tag string

// Default is the language for guests without a supported preference.
const Default Tag = "en"

// ErrNotSupported is the error for an unsupported tag.
var ErrNotSupported = errors.New("locale: not supported")

var supported = []Tag{Default, "ps-AF", "fa-AF", "fa-IR", "tg-TJ", "ar", "ur-PK", "ru", "fr"}

// Supported returns a copy of the list of supported tags, the default first.
func Supported() []Tag { return slices.Clone(supported) }

// Parse returns the supported tag s, in upper or lower case; prs and prs-AF, the other code of
// Dari, give fa-AF. Any other text, also a close tag such as en-US, gives "" and ErrNotSupported,
// because the guest should learn that an explicitly chosen language is missing. Pure.
func Parse(s string) (Tag, error) {
	for _, t := range supported {
		if strings.EqualFold(s, string(t)) {
			return t, nil
		}
	}
	if strings.EqualFold(s, "prs") || strings.EqualFold(s, "prs-AF") {
		return "fa-AF", nil
	}
	return "", ErrNotSupported
}
