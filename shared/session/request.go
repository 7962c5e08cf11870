package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Request holds the guest's headers of a single request, before the read of the session.
type Request struct {
	Client
	ID       string // genuine id of the cookie; empty: no cookie
	campaign *Campaign
	optedOut bool // DNT: 1 or Sec-GPC: 1
	language requested[locale.Tag]
	currency requested[money.Currency]
	country  string // from the load balancer; empty: unknown
}

// requested is the value from a header. present distinguishes an absent header from an unknown
// value.
type requested[T any] struct {
	value   T
	present bool
}

// ParseRequest reads the guest's headers and verifies the cookie. It costs CPU alone: ParseClient,
// an HMAC per key of the ring, and the first use of some headers in a process builds their parsers.
// Its only error is a CurrencyNotSupported problem, with a nil Request: the platform does not
// support the currency in X-Currency. Every other malformed header counts as absent, and a cookie
// that VerifiedID rejects as no cookie. An Accept-Language without a supported language means the
// default language.
func (st *Store) ParseRequest(req *http.Request) (*Request, error) {
	h := req.Header
	parsed := &Request{
		Client:   st.ParseClient(req),
		ID:       st.VerifiedID(req),
		optedOut: HasOptOut(h),
		country:  parseCountry(h.Get("X-Client-Geo-Country")),
		campaign: parseCampaign(h, st.now()),
	}
	if c := h.Get("X-Currency"); c != "" {
		currency, err := web.ParseCurrency("X-Currency", c)
		if err != nil {
			return nil, err
		}
		parsed.currency = requested[money.Currency]{currency, true}
	}
	if l := h.Get("Accept-Language"); l != "" {
		tag, ok := locale.Match(l)
		if !ok {
			tag = locale.Default
		}
		parsed.language = requested[locale.Tag]{tag, true}
	}
	return parsed, nil
}

// HasOptOut reports whether the browser refuses telemetry for every guest: DNT: 1 or Sec-GPC: 1.
func HasOptOut(h http.Header) bool { return h.Get("DNT") == "1" || h.Get("Sec-GPC") == "1" }

// parseCountry returns an ISO 3166-1 alpha-2 code, or "" for any other value.
func parseCountry(header string) string {
	if len(header) != 2 || header[0] < 'A' || header[0] > 'Z' || header[1] < 'A' || header[1] > 'Z' {
		return ""
	}
	return header
}
