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

// labels are the words the services use, in every language of the region.
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
		panic(fmt.Sprintf("sandbox: labels: %v", err)) // a mistake in a file that is compiled in
	}
	return all
}()

// text is the text in the language of a locale, "fa" for fa-AF; English where there is none, "" for no label.
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

// textOr is the label's text, or the value itself where nobody translated it.
func (l label) textOr(locale, value string) string {
	if text := l.text(locale); text != "" {
		return text
	}
	return value
}

// newLocalized is a name as the contracts write it. When it is known in the language of the locale it is there under
// the locale's own tag as well, so that a client finds it without knowing that Dari is Persian.
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

// propertyName is the name of a property in the language of a locale.
func propertyName(p *dataset.Property, locale string) string {
	for _, tag := range []string{locale, primaryLanguage(locale)} {
		if name := p.Row.Names[tag]; name != "" {
			return name
		}
	}
	return p.Row.Name
}
