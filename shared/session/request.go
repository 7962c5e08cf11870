package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Request is what one request says of its guest, before anything is looked up.
type Request struct {
	Client
	ID       string // genuine id of the cookie; empty when there is none
	campaign *Campaign
	optedOut bool // DNT: 1 or Sec-GPC: 1
	language requested[locale.Tag]
	currency requested[money.Currency]
	country  string // of the load balancer; empty when unknown
}

// requested is what a header asks for; sent tells an absent header from one that matched nothing.
type requested[T any] struct {
	value   T
	present bool
}

// ParseRequest takes the visit from a request. The only error is a problem: X-Currency names no currency of
// the platform.
func (r *Store) ParseRequest(req *http.Request) (*Request, error) {
	h := req.Header
	v := &Request{
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
		v.currency = requested[money.Currency]{currency, true}
	}
	if l := h.Get("Accept-Language"); l != "" {
		tag, ok := locale.Match(l)
		if !ok {
			tag = locale.Default
		}
		v.language = requested[locale.Tag]{tag, true}
	}
	return v, nil
}

// HasOptOut says whether a browser refuses telemetry for whoever uses it.
func HasOptOut(h http.Header) bool { return h.Get("DNT") == "1" || h.Get("Sec-GPC") == "1" }

func parseCountry(header string) string {
	if len(header) != 2 || header[0] < 'A' || header[0] > 'Z' || header[1] < 'A' || header[1] > 'Z' {
		return ""
	}
	return header
}
