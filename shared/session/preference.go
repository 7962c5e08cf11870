package session

import (
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// chooseLocale decides in this order: what the guest chose, what this request asks for, what an earlier
// one asked for, the default.
func chooseLocale(stored locale.Tag, source Source, v *Visit) (locale.Tag, Source) {
	switch {
	case stored != "" && source == Explicit:
		return stored, source
	case v.language.sent:
		return v.language.value, Header
	case stored != "":
		return stored, source
	default:
		return locale.Default, Default
	}
}

// chooseCurrency is chooseLocale for money, where a guest without a wish gets the currency of the
// country the load balancer saw.
func chooseCurrency(stored money.Currency, source Source, v *Visit) (money.Currency, Source) {
	switch {
	case stored != "" && source == Explicit:
		return stored, source
	case v.currency.sent:
		return v.currency.value, Header
	case stored != "" && source == Header:
		return stored, source
	case v.country != "":
		return money.ForCountry(v.country), GeoIP
	case stored != "":
		return stored, source
	default:
		return money.ForCountry(""), Default
	}
}

// ChooseLocale sets the language the guest chose, for good.
func (s *Session) ChooseLocale(l locale.Tag) {
	s.Locale, s.LocaleSource = l, Explicit
	s.set("localePreference", string(l))
	s.set("localeSource", string(Explicit))
}

// ChooseCurrency sets the currency the guest chose, for good.
func (s *Session) ChooseCurrency(c money.Currency) {
	s.Currency, s.CurrencySource = c, Explicit
	s.set("currencyPreference", string(c))
	s.set("currencySource", string(Explicit))
}

// preferences is a pair the hint cache keeps.
type preferences struct {
	locale   locale.Tag
	currency money.Currency
}

// Guess is the locale and currency this visit will most likely settle on, so that the cache can be
// read in the round trip that reads the session. A wrong guess costs one more round trip, once per
// instance and guest.
func (r *Room) Guess(v *Visit) (locale.Tag, money.Currency) {
	if v.ID != "" {
		if p, ok := r.hints.Get(v.ID); ok {
			return p.locale, p.currency
		}
	}
	l, _ := chooseLocale("", "", v)
	c, _ := chooseCurrency("", "", v)
	return l, c
}

// learn remembers preferences that the headers of the visit would not have led to.
func (r *Room) learn(v *Visit, s *Session) {
	if l, c := r.Guess(v); l != s.Locale || c != s.Currency {
		r.hints.Add(s.ID, preferences{s.Locale, s.Currency})
	}
}
