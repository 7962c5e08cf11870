package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientIP returns the address seen by our outermost proxy, or an invalid address. Each of our
// proxies appends its peer to X-Forwarded-For, so with n proxies the client is the nth entry from
// the end; a client can forge the entries before. A chain shorter than n was written by our proxies
// only, and its first entry is the client. Without proxies, or with an invalid entry, the result is
// the peer's address.
func clientIP(r *http.Request, hops int) netip.Addr {
	if hops > 0 {
		lines := r.Header["X-Forwarded-For"]
		entry := ""
		for i := len(lines) - 1; i >= 0 && hops > 0; i-- {
			rest := lines[i]
			for more := true; more && hops > 0; hops-- {
				cut := strings.LastIndexByte(rest, ',')
				entry, more = strings.TrimSpace(rest[cut+1:]), cut >= 0
				rest = rest[:max(cut, 0)]
			}
		}
		if addr, ok := parseAddress(entry); ok {
			return addr
		}
	}
	addr, _ := parseAddress(r.RemoteAddr)
	return addr
}

// parseAddress reads an IP address with or without a port.
func parseAddress(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

// AddressGroup names the group of addresses that count as a single client: an IPv4 address alone,
// also in IPv6 form, and an IPv6 address with its /64, the size of the network of a provider's
// line. An invalid address has the group "". It never fails. CPU only.
func AddressGroup(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // unreachable error: 64 fits
		return prefix.String()
	}
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}
