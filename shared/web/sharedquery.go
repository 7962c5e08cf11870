package web

import (
	"net/http"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// SharedQuery is the query string of a shared route. The response depends on the query string, and
// on headers only for a locale or currency that the URL does not name; it never depends on a
// cookie.
type SharedQuery struct {
	url.Values
	Locale           locale.Tag
	Currency         money.Currency
	PreferencesInURL bool // locale and currency are in the URL: a CDN may store the response without Vary
}

// ReadSharedQuery reads the parameters of a shared route: the given names, locale and currency,
// each at most once. Any other or repeated parameter is a ValidationFailed problem, because every
// distinct URL is an entry of its own in the CDN; a query string that cannot be parsed is a
// MalformedRequest problem. The values of names are not checked.
//
// Without a locale in the URL, Accept-Language decides, or locale.Default. Without a currency in
// the URL, X-Currency decides, or USD. An unsupported locale in the URL, and an unsupported
// currency in the URL or in X-Currency, are the problems of ParseLocale and ParseCurrency. Ignore
// the result if there is an error. CPU and memory only; the first call with an unusual
// Accept-Language also builds the process's matcher.
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
	name, value := "X-Currency", r.Header.Get("X-Currency")
	if values.Has("currency") {
		name, value = "currency", values.Get("currency")
	}
	if value == "" && name == "X-Currency" {
		// the guest's country would make the response depend on more than the URL
		return money.ForCountry(""), nil
	}
	return ParseCurrency(name, value)
}
