package session

import (
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// resolveLocale returns, in this order of precedence: the guest's explicit choice, the language of
// this request, the language of an earlier request, the default.
func resolveLocale(stored locale.Tag, source Source, request *Request) (locale.Tag, Source) {
	switch {
	case stored != "" && source == SourceExplicit:
		return stored, source
	case request.language.present:
		return request.language.value, SourceHeader
	case stored != "":
		return stored, source
	default:
		return locale.Default, SourceDefault
	}
}

// resolveCurrency is resolveLocale for currencies. A guest who never asked for a currency gets the
// currency of the country seen by the load balancer, or the default currency without a country.
func resolveCurrency(stored money.Currency, source Source, request *Request) (money.Currency, Source) {
	switch {
	case stored != "" && source == SourceExplicit:
		return stored, source
	case request.currency.present:
		return request.currency.value, SourceHeader
	case stored != "" && source == SourceHeader:
		return stored, source
	case request.country != "":
		return money.ForCountry(request.country), SourceGeoIP
	case stored != "":
		return stored, source
	default:
		return money.ForCountry(""), SourceDefault
	}
}

// SetLocale sets the guest's explicit language in memory and does not check l. The caller saves the
// session by EnqueueSave.
func (s *Session) SetLocale(l locale.Tag) {
	s.Locale, s.LocaleSource = l, SourceExplicit
	s.setField("localePreference", string(l))
	s.setField("localeSource", string(SourceExplicit))
}

// SetCurrency sets the guest's explicit currency in memory and does not check c. The caller saves
// the session by EnqueueSave.
func (s *Session) SetCurrency(c money.Currency) {
	s.Currency, s.CurrencySource = c, SourceExplicit
	s.setField("currencyPreference", string(c))
	s.setField("currencySource", string(SourceExplicit))
}

// preferences is an entry of Store.preferenceCache.
type preferences struct {
	locale   locale.Tag
	currency money.Currency
}

// PredictPreferences predicts the locale and currency of the session before Resolve, so that the
// caller can read a cache entry in the round trip of Enqueue. It reads no store and never fails: it
// uses the headers and, for up to 16,384 guests per instance, cached preferences, behind a mutex of
// the process. A wrong prediction costs the caller another round trip, usually once per instance
// and guest, and again after a change of preferences or an eviction from the cache.
func (st *Store) PredictPreferences(request *Request) (locale.Tag, money.Currency) {
	if request.ID != "" {
		if p, ok := st.preferenceCache.Get(request.ID); ok {
			return p.locale, p.currency
		}
	}
	l, _ := resolveLocale("", "", request)
	c, _ := resolveCurrency("", "", request)
	return l, c
}

// rememberPreferences caches the preferences of s if PredictPreferences predicts others from the
// headers.
func (st *Store) rememberPreferences(request *Request, s *Session) {
	if l, c := st.PredictPreferences(request); l != s.Locale || c != s.Currency {
		st.preferenceCache.Add(s.ID, preferences{s.Locale, s.Currency})
	}
}
