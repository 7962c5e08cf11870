package session

import (
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// resolveLocale decides in this order: what the guest chose, what this request asks for, what an earlier
// one asked for, the default.
func resolveLocale(stored locale.Tag, source Source, v *Request) (locale.Tag, Source) {
	switch {
	case stored != "" && source == SourceExplicit:
		return stored, source
	case v.language.present:
		return v.language.value, SourceHeader
	case stored != "":
		return stored, source
	default:
		return locale.Default, SourceDefault
	}
}

// resolveCurrency is chooseLocale for money, where a guest without a wish gets the currency of the
// country the load balancer saw.
func resolveCurrency(stored money.Currency, source Source, v *Request) (money.Currency, Source) {
	switch {
	case stored != "" && source == SourceExplicit:
		return stored, source
	case v.currency.present:
		return v.currency.value, SourceHeader
	case stored != "" && source == SourceHeader:
		return stored, source
	case v.country != "":
		return money.ForCountry(v.country), SourceGeoIP
	case stored != "":
		return stored, source
	default:
		return money.ForCountry(""), SourceDefault
	}
}

// SetLocale sets the language the guest chose, for good.
func (s *Session) SetLocale(l locale.Tag) {
	s.Locale, s.LocaleSource = l, SourceExplicit
	s.setField("localePreference", string(l))
	s.setField("localeSource", string(SourceExplicit))
}

// SetCurrency sets the currency the guest chose, for good.
func (s *Session) SetCurrency(c money.Currency) {
	s.Currency, s.CurrencySource = c, SourceExplicit
	s.setField("currencyPreference", string(c))
	s.setField("currencySource", string(SourceExplicit))
}

// preferences is a pair the hint cache keeps.
type preferences struct {
	locale   locale.Tag
	currency money.Currency
}

// PredictPreferences is the locale and currency this visit will most likely settle on, so that the cache can be
// read in the round trip that reads the session. A wrong guess costs one more round trip, once per
// instance and guest.
func (r *Store) PredictPreferences(v *Request) (locale.Tag, money.Currency) {
	if v.ID != "" {
		if p, ok := r.preferenceCache.Get(v.ID); ok {
			return p.locale, p.currency
		}
	}
	l, _ := resolveLocale("", "", v)
	c, _ := resolveCurrency("", "", v)
	return l, c
}

// rememberPreferences remembers preferences that the headers of the visit would not have led to.
func (r *Store) rememberPreferences(v *Request, s *Session) {
	if l, c := r.PredictPreferences(v); l != s.Locale || c != s.Currency {
		r.preferenceCache.Add(s.ID, preferences{s.Locale, s.Currency})
	}
}
