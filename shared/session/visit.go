package session

import (
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Visit is what one request says of its guest, before anything is looked up.
type Visit struct {
	Client
	ID          string // genuine id of the cookie; empty when there is none
	campaign    *Campaign
	refusesLogs bool // DNT: 1 or Sec-GPC: 1
	language    wish[locale.Tag]
	currency    wish[money.Currency]
	country     string // of the load balancer; empty when unknown
}

// wish is what a header asks for; sent tells an absent header from one that matched nothing.
type wish[T any] struct {
	value T
	sent  bool
}

// Read takes the visit from a request. The only error is a problem: X-Currency names no currency of
// the platform.
func (r *Room) Read(req *http.Request) (*Visit, error) {
	h := req.Header
	v := &Visit{
		Client:      r.Client(req),
		ID:          r.Cookie(req),
		refusesLogs: Refuses(h),
		country:     country(h.Get("X-Client-Geo-Country")),
		campaign:    campaign(h, r.now()),
	}
	if c := h.Get("X-Currency"); c != "" {
		currency, err := web.Currency("X-Currency", c)
		if err != nil {
			return nil, err
		}
		v.currency = wish[money.Currency]{currency, true}
	}
	if l := h.Get("Accept-Language"); l != "" {
		tag, ok := locale.Match(l)
		if !ok {
			tag = locale.Default
		}
		v.language = wish[locale.Tag]{tag, true}
	}
	return v, nil
}

// Refuses says whether a browser refuses telemetry for whoever uses it.
func Refuses(h http.Header) bool { return h.Get("DNT") == "1" || h.Get("Sec-GPC") == "1" }

func country(header string) string {
	if len(header) != 2 || header[0] < 'A' || header[0] > 'Z' || header[1] < 'A' || header[1] > 'Z' {
		return ""
	}
	return header
}
