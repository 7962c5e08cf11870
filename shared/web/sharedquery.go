package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// SharedQuery is the query string of a shared route. Its answer depends on nothing else: not on a cookie,
// and on headers only for the locale and currency that the URL does not name.
type SharedQuery struct {
	url.Values
	Locale   locale.Tag
	Currency money.Currency
	InURL    bool // both are in the URL, so that a CDN may store the answer without Vary
}

// ReadSharedQuery reads the parameters of a shared route: those named, locale and currency, each at most
// once. Anything else is refused, because every distinct URL is an entry of its own at the edge.
func ReadSharedQuery(r *http.Request, names ...string) (SharedQuery, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return SharedQuery{}, malformedQuery("query", "malformed", "The query string is not well formed.")
	}
	var wrong []problem.Field
	for name, given := range values {
		switch {
		case name != "locale" && name != "currency" && !slices.Contains(names, name):
			wrong = append(wrong, problem.Field{Field: queryField(name), Code: "unknown", Detail: "There is no such parameter."})
		case len(given) > 1:
			wrong = append(wrong, problem.Field{Field: name, Code: "duplicate", Detail: "Give it once."})
		}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b problem.Field) int { return strings.Compare(a.Field, b.Field) })
		return SharedQuery{}, problem.Invalid(wrong...)
	}
	q := SharedQuery{Values: values, InURL: values.Has("locale") && values.Has("currency")}
	if q.Locale, err = sharedLocale(r, values); err != nil {
		return SharedQuery{}, err
	}
	q.Currency, err = sharedCurrency(r, values)
	return q, err
}

func sharedLocale(r *http.Request, values url.Values) (locale.Tag, error) {
	if values.Has("locale") {
		tag, err := locale.Parse(values.Get("locale"))
		if err != nil {
			return "", NotSupported(problem.LocaleNotSupported, "locale", err)
		}
		return tag, nil
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
	c, err := money.Parse(wish)
	if err != nil {
		return "", NotSupported(problem.CurrencyNotSupported, name, err)
	}
	return c, nil
}

// NotSupported is the problem of a locale or currency outside the platform's set; it names where that came from.
func NotSupported(kind problem.Kind, field string, cause error) error {
	p := problem.New(kind, "See errors for the value that is not supported.", cause)
	p.Fields = []problem.Field{{Field: field, Code: "not-supported", Detail: "It is not in the set of this platform."}}
	return p
}

func malformedQuery(field, code, detail string) error {
	p := problem.New(problem.MalformedRequest, detail, nil)
	p.Fields = []problem.Field{{Field: field, Code: code, Detail: detail}}
	return p
}

// queryField names an unknown parameter without repeating more of it than an identifier could be.
func queryField(name string) string {
	if len(name) == 0 || len(name) > 40 || strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' }) {
		return "query"
	}
	return name
}
