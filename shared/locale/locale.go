// Package locale owns the languages the guest can choose from and how one is chosen.
// It never translates, and it never reads a request itself.
package locale

import (
	"errors"
	"slices"
	"strings"
)

// Tag is one of the supported BCP 47 tags, in its canonical spelling.
type Tag string

// Default is what a guest gets who asked for nothing we have.
const Default Tag = "en"

// ErrNotSupported is returned for an explicit tag outside the set.
var ErrNotSupported = errors.New("locale: not supported")

var supported = []Tag{Default, "ps-AF", "fa-AF", "fa-IR", "tg-TJ", "ar", "ur-PK", "ru", "fr"}

// Supported returns the set, the default first.
func Supported() []Tag { return slices.Clone(supported) }

// Parse accepts a member of the set in any case, and prs, the other name of Dari. Anything else is ErrNotSupported:
// who names a language explicitly is told when we do not have it.
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
