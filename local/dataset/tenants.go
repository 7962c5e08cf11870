package dataset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// MediaHost is the host of all picture URLs. The name is reserved and never resolves, so an
// invented property cannot load pictures from a real hotel's site.
const MediaHost = "https://media.sandbox.example"

// chainsPerCountry is the number of invented chains of a country. 34 % of the properties belong to
// a chain.
const chainsPerCountry = 24

// chainNames are the patterns of chain names by language.
var chainNames = map[string]string{
	"en": "%s Hotels", "fr": "Hôtels %s", "fa": "هتل‌های %s", "ps": "د %s هوټلونه",
	"ar": "فنادق %s", "ur": "%s ہوٹلز", "ru": "Отели «%s»", "tg": "Меҳмонхонаҳои %s",
}

// tenantOf returns the owner of a property and adds a missing owner: the row's brand, else an
// invented chain, else a tenant with this property only.
func (b *builder) tenantOf(p *Property, s seed) *Tenant {
	var key string
	name := Text{Default: p.Row.Name, Localized: p.Row.Names}
	switch {
	case p.Row.Brand != "":
		key = "brand\n" + Fold(p.Row.Brand)
		name = Text{Default: p.Row.Brand}
	case s.chance("belongs to a house", 34):
		u := float64(s.pick("house", 1000)) / 1000
		chain := int(chainsPerCountry * u * u * u) // a few chains are large, most are small
		key = fmt.Sprintf("house\n%s\n%d", p.Country, chain)
		name = b.chainName(p.Country, key)
	default:
		key = "own\n" + p.Row.ID
	}
	if t := b.tenants[key]; t != nil {
		return t
	}
	ts := seedOf("tenant", key)
	t := &Tenant{
		ID:            ts.ulid(id.Tenant),
		Brand:         name,
		Color:         color(ts),
		ServingRegion: profileOf(p.Country).region,
	}
	if ts.chance("abroad", 9) {
		t.ServingRegion = []string{"europe-west1", "us-east4", "asia-southeast1"}[ts.pick("where", 3)]
	}
	t.Slug = b.slug(name, ts)
	t.LogoURL = MediaHost + "/brands/" + t.Slug + ".svg"
	b.tenants[key] = t
	return t
}

// chainName returns the name of a chain in all languages of its word.
func (b *builder) chainName(country, key string) Text {
	words := forCountry(b.words, country, func(w nameWord) []string { return w.Countries })
	if len(words) == 0 {
		words = b.words
	}
	word := words[seedOf("house", key).pick("word", len(words))]
	name := Text{Default: fmt.Sprintf(chainNames["en"], word.Names["en"]), Localized: map[string]string{}}
	for _, lang := range Languages {
		if text, ok := word.name(lang); ok {
			if lang == "ps" {
				text = strings.TrimPrefix(text, "د ") // the pattern already contains the particle
			}
			name.Localized[lang] = fmt.Sprintf(chainNames[lang], text)
		}
	}
	return name
}

// slug returns a unique DNS label: the Latin letters of a name and at least 5 characters of an id.
func (b *builder) slug(name Text, s seed) string {
	text := latin(name.Default)
	if len(text) < 3 {
		text = latin(name.Localized["en"])
	}
	if len(text) < 3 {
		text = "stay"
	}
	if len(text) > 40 {
		text = strings.TrimRight(text[:40], "-")
	}
	unique := strings.ToLower(s.ulid(id.Tenant))
	for n := 5; ; n++ {
		slug := text + "-" + unique[len(unique)-n:]
		if !b.slugs[slug] {
			b.slugs[slug] = true
			return slug
		}
	}
}

// latin returns the ASCII letters and digits of a text in lower case, with hyphens between words.
func latin(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(s)) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case isDiacritic(r) || r == '\'' || r == '’':
		default:
			if n := b.Len(); n > 0 && b.String()[n-1] != '-' && r < utf8.MaxRune {
				b.WriteByte('-')
			}
		}
	}
	return strings.Trim(b.String(), "-")
}

// color returns a brand colour as #rrggbb, dark enough to be readable on white: any hue, lightness
// at most 44 %.
func color(s seed) string {
	hue := float64(s.pick("hue", 360))
	saturation := float64(s.between("saturation", 45, 75)) / 100
	lightness := float64(s.between("lightness", 28, 44)) / 100
	channel := func(n float64) int {
		k := n + hue/30
		for k >= 12 {
			k -= 12
		}
		a := saturation * min(lightness, 1-lightness)
		return int(255*(lightness-a*max(-1, min(k-3, 9-k, 1))) + 0.5)
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(8), channel(4))
}
