package session

import (
	"net/http"
	"net/netip"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Client describes the browser of a request and its address. It does not contain the cookie, so
// shared routes may use it. The methods compute a new HMAC per call.
type Client struct {
	Fingerprint    string   // sha256:<hex> over browser, system, language, screen, time zone
	UserAgentClass string   // browser-desktop | browser-mobile | browser-tablet | app | bot | other
	bindings       []string // sha256:<hex> over browser and system, per pepper, newest first

	pepper    keyring.Key // the newest
	addr      netip.Addr
	userAgent string
}

// ParseClient reads the client from a request and never fails, unless the store has no pepper: then
// it panics. It costs an HMAC and a mutex of the process for a lookup. A user agent outside the
// cache of 4,096 costs tens of microseconds of CPU and an HMAC per pepper more. Outside the
// pipeline of package web the client has no address.
func (st *Store) ParseClient(req *http.Request) Client {
	h := req.Header
	a := st.agentParser.parse(h.Get("User-Agent"))
	c := Client{
		UserAgentClass: a.deviceClass, bindings: a.bindings,
		pepper: st.peppers.Active(), addr: web.FromContext(req.Context()).ClientIP, userAgent: h.Get("User-Agent"),
	}
	c.Fingerprint = digest.Format(c.pepper.Sum("fingerprint.v1", []byte(a.browser), []byte(a.system),
		[]byte(primaryLanguage(h.Get("Accept-Language"))), []byte(h.Get("X-Client-Screen")), []byte(h.Get("X-Client-Timezone"))))
	return c
}

// IPHash returns sha256:<hex> of the client's address. IPv6 addresses count by /64; all unknown
// addresses have the same hash. The hash stays the same until the newest pepper changes. The
// methods of a zero Client panic, except HasIP.
func (c *Client) IPHash() string {
	return digest.Format(c.pepper.Sum("ip.v1", []byte(web.AddressGroup(c.addr))))
}

// HasIP reports whether the client's address is known.
func (c *Client) HasIP() bool { return c.addr.IsValid() }

// GroupHash returns sha256:<hex> of fingerprint and address together. Half a country may share a
// fingerprint, where everybody has the same phone and the same language.
func (c *Client) GroupHash() string {
	return digest.Format(c.pepper.Sum("client-group.v1", []byte(c.Fingerprint), []byte(web.AddressGroup(c.addr))))
}

// UserAgentHash returns sha256:<hex> of the whole User-Agent header, also beyond 512 bytes.
func (c *Client) UserAgentHash() string {
	return digest.Format(c.pepper.Sum("user-agent.v1", []byte(c.userAgent)))
}

// primaryLanguage returns the first language range of an Accept-Language header, without its
// weight.
func primaryLanguage(acceptLanguage string) string {
	first, _, _ := strings.Cut(acceptLanguage, ",")
	first, _, _ = strings.Cut(first, ";")
	return strings.ToLower(strings.TrimSpace(first))
}
