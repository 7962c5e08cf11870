package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientIP is the address our outermost proxy saw. Each of our proxies appends its peer to X-Forwarded-For, so with n
// of them the client is the nth entry from the end, and what stands before it is hearsay. A chain that is shorter than
// it should be was written by ours alone, and its first entry is the client.
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

// AddressGroup names the addresses that count as one client: an IPv4 address by itself, an IPv6 address by its /64, which is
// what one line is given. It is "" for an invalid address.
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
