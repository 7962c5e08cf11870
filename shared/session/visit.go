package session

import (
	"net/http"
	"net/netip"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Visit is what one request says of its guest, before anything is looked up.
type Visit struct {
	ID          string   // genuine id of the cookie; empty when there is none
	Fingerprint string   // sha256:<hex> over browser, system, language, screen and time zone, each when sent
	AgentClass  string   // browser-desktop | browser-mobile | browser-tablet | app | bot | other
	bindings    []string // sha256:<hex> over browser and system family alone, one for each pepper, newest first
	campaign    *Campaign
	refusesLogs bool // DNT: 1 or Sec-GPC: 1
	language    wish[locale.Tag]
	currency    wish[money.Currency]
	country     string // of the load balancer; empty when unknown

	pepper keyring.Key // the newest
	client netip.Addr
	agent  string
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
		ID:          r.cookie(req),
		refusesLogs: h.Get("DNT") == "1" || h.Get("Sec-GPC") == "1",
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
	a := r.agents.family(h.Get("User-Agent"))
	v.AgentClass, v.bindings = a.class, a.bindings
	v.pepper, v.client, v.agent = r.peppers.Active(), web.From(req.Context()).ClientIP, h.Get("User-Agent")
	v.Fingerprint = digest.Text(v.pepper.Sum("fingerprint.v1", []byte(a.browser), []byte(a.system),
		[]byte(primary(h.Get("Accept-Language"))), []byte(h.Get("X-Client-Screen")), []byte(h.Get("X-Client-Timezone"))))
	return v, nil
}

// IPHash is sha256:<hex> of the client's address, IPv6 by /64.
func (v *Visit) IPHash() string {
	return digest.Text(v.pepper.Sum("ip.v1", []byte(web.Group(v.client))))
}

// AgentHash is sha256:<hex> of the user agent as it was sent.
func (v *Visit) AgentHash() string {
	return digest.Text(v.pepper.Sum("user-agent.v1", []byte(v.agent)))
}

// primary is the first language range of an Accept-Language header, without its weight.
func primary(acceptLanguage string) string {
	first, _, _ := strings.Cut(acceptLanguage, ",")
	first, _, _ = strings.Cut(first, ";")
	return strings.ToLower(strings.TrimSpace(first))
}

func country(header string) string {
	if len(header) != 2 || header[0] < 'A' || header[0] > 'Z' || header[1] < 'A' || header[1] > 'Z' {
		return ""
	}
	return header
}
