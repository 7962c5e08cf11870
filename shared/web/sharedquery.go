package web

import (
	"net/http"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// SharedQuery is the query string of a shared route. Its answer depends on nothing else: not on a cookie,
// and on headers only for the locale and currency that the URL does not name.
type SharedQuery struct {
	url.Values
	Locale           locale.Tag
	Currency         money.Currency
	PreferencesInURL bool // both are in the URL, so that a CDN may store the answer without Vary
}

// ReadSharedQuery reads the parameters of a shared route: those named, locale and currency, each at most
// once. Anything else is refused, because every distinct URL is an entry of its own at the edge.
func ReadSharedQuery(r *http.Request, names ...string) (SharedQuery, error) {
	values, err := parseQuery(r, append(names, "locale", "currency")...)
	if err != nil {
		return SharedQuery{}, err
	}
	q := SharedQuery{Values: values, PreferencesInURL: values.Has("locale") && values.Has("currency")}
	if q.Locale, err = sharedLocale(r, values); err != nil {
		return SharedQuery{}, err
	}
	q.Currency, err = sharedCurrency(r, values)
	return q, err
}

func sharedLocale(r *http.Request, values url.Values) (locale.Tag, error) {
	if values.Has("locale") {
		return ParseLocale("locale", values.Get("locale"))
	}
	if tag, ok := locale.Match(r.Header.Get("Accept-Language")); ok {
		return tag, nil
	}
	return locale.Default, nil
}

func sharedCurrency(r *http.Request, values url.Values) (money.Currency, error) {
	name, wish := "X-Currency", r.Header.Get("X-Currency")
	if values.Has("currency") {
		name, wish = "currency", values.Get("currency")
	}
	if wish == "" && name == "X-Currency" {
		return money.ForCountry(""), nil // the country of the guest would make the answer depend on more than its URL
	}
	return ParseCurrency(name, wish)
}
