package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Request is what the headers of one request say of its guest, before the store is read.
type Request struct {
	Client
	ID       string // genuine id of the cookie; empty: there is none
	campaign *Campaign
	optedOut bool // DNT: 1 or Sec-GPC: 1
	language requested[locale.Tag]
	currency requested[money.Currency]
	country  string // from the load balancer; empty: unknown
}

// requested is the value that a header asks for. present tells an absent header from one that
// matched nothing.
type requested[T any] struct {
	value   T
	present bool
}

// ParseRequest reads the guest's headers and verifies the cookie. It costs CPU alone, as
// ParseClient does, and one HMAC per key of the ring. Its only error is a problem: X-Currency names
// a currency that the platform does not have. An Accept-Language that matches no language means the
// default language.
func (r *Store) ParseRequest(req *http.Request) (*Request, error) {
	h := req.Header
	parsed := &Request{
		Client:   r.ParseClient(req),
		ID:       r.VerifiedID(req),
		optedOut: HasOptOut(h),
		country:  parseCountry(h.Get("X-Client-Geo-Country")),
		campaign: parseCampaign(h, r.now()),
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

// HasOptOut reports whether the browser refuses telemetry for every guest who uses it: DNT: 1 or
// Sec-GPC: 1.
func HasOptOut(h http.Header) bool { return h.Get("DNT") == "1" || h.Get("Sec-GPC") == "1" }

// parseCountry returns an ISO 3166-1 alpha-2 code, or "" for any other value.
func parseCountry(header string) string {
	if len(header) != 2 || header[0] < 'A' || header[0] > 'Z' || header[1] < 'A' || header[1] > 'Z' {
		return ""
	}
	return header
}
