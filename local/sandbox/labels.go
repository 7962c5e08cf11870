package sandbox

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
)

//go:embed labels.json
var labelsJSON []byte

// label is a text by language.
type label map[string]string

// labels are the texts of all responses, in dataset.Languages.
var labels = func() (all struct {
	Amenities map[string]struct {
		Category string `json:"category"`
		Label    label  `json:"label"`
	} `json:"amenities"`
	PropertyType map[string]label `json:"propertyType"`
	Cancellation map[string]label `json:"cancellationFlexibility"`
	Quarters     map[string]label `json:"quarters"`
	Rooms        map[string]label `json:"rooms"`
	Stars        label            `json:"stars"`
	RatingFrom   label            `json:"ratingFrom"`
	Description  label            `json:"description"`
	Photo        label            `json:"photo"`
	CheckIn      label            `json:"checkIn"`
	CheckOut     label            `json:"checkOut"`
}) {
	if err := json.Unmarshal(labelsJSON, &all); err != nil {
		panic(fmt.Sprintf("sandbox: labels: %v", err)) // unreachable: a test decodes the embedded file
	}
	return all
}()

// text returns the text in the language of a locale ("fa" for fa-AF), or in English, or "" for an
// empty label.
func (l label) text(locale string) string {
	if text, ok := l[primaryLanguage(locale)]; ok {
		return text
	}
	return l["en"]
}

func primaryLanguage(locale string) string {
	lang, _, _ := strings.Cut(locale, "-")
	return strings.ToLower(lang)
}

// textOr returns the label's text, or value for an empty label.
func (l label) textOr(locale, value string) string {
	if text := l.text(locale); text != "" {
		return text
	}
	return value
}

// newLocalized returns a name in the form of the contracts. A translation in the locale's language
// is also stored under the locale's tag, so a client finds the name of fa-AF (Dari) without
// knowledge that Dari is a form of Persian.
func newLocalized(default_ string, names map[string]string, locale string) localized {
	l := localized{Default: default_}
	if len(names) == 0 {
		return l
	}
	l.Localized = make(map[string]string, len(names)+1)
	for tag, name := range names {
		l.Localized[tag] = name
	}
	if name, ok := names[primaryLanguage(locale)]; ok && locale != "" {
		l.Localized[locale] = name
	}
	return l
}

// propertyName returns the name of a property in a locale's language, or the default name.
func propertyName(p *dataset.Property, locale string) string {
	for _, tag := range []string{locale, primaryLanguage(locale)} {
		if name := p.Row.Names[tag]; name != "" {
			return name
		}
	}
	return p.Row.Name
}
