package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClientIP_UsesEntryOfOutermostTrustedProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule      string
		hops      int
		forwarded []string
		want      string
	}{
		{"no proxy: the peer, whatever the header says", 0, []string{"203.0.113.9"}, "192.0.2.1"},
		{"one proxy: the last entry", 1, []string{"203.0.113.9"}, "203.0.113.9"},
		{"one proxy: a forged entry before it", 1, []string{"8.8.8.8, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", 2, []string{"8.8.8.8, 203.0.113.9, 10.0.0.1"}, "203.0.113.9"},
		{"two proxies, entries on lines of their own", 2, []string{"8.8.8.8", "203.0.113.9", "10.0.0.1"}, "203.0.113.9"},
		{"two proxies, lines of several", 2, []string{"8.8.8.8, 203.0.113.9", "10.0.0.1"}, "203.0.113.9"},
		{"a shorter chain is all ours", 3, []string{"203.0.113.9, 10.0.0.1"}, "203.0.113.9"},
		{"no header: the peer", 1, nil, "192.0.2.1"},
		{"an empty header: the peer", 1, []string{""}, "192.0.2.1"},
		{"not an address: the peer", 1, []string{"unknown"}, "192.0.2.1"},
		{"not an address, but a good one before it", 1, []string{"203.0.113.9, x"}, "192.0.2.1"},
		{"with a port", 1, []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6", 1, []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 with a port", 1, []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"IPv6 with a zone", 1, []string{"fe80::1%eth0"}, "fe80::1"},
		{"IPv4 in IPv6", 1, []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if c.forwarded != nil {
			r.Header["X-Forwarded-For"] = c.forwarded
		}
		if got := clientIP(r, c.hops); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
	if got := clientIP(&http.Request{RemoteAddr: "@"}, 0); got.IsValid() {
		t.Errorf("a socket without address is %s", got)
	}
}

func TestAddressGroup_MasksIPv6To64Bits(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "::ffff:203.0.113.9": "203.0.113.9", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::": "2001:db8:1:2::/64",
		"2001:db8:1:3::1": "2001:db8:1:3::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := AddressGroup(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s is in %s, want %s", in, got, want)
		}
	}
	if got := AddressGroup(netip.Addr{}); got != "" {
		t.Errorf("no address is in %q", got)
	}
}

func FuzzClientIP_ReturnsValidUnmappedAddress(f *testing.F) {
	f.Add("8.8.8.8, 203.0.113.9", 1)
	f.Add(",,,", 3)
	f.Fuzz(func(t *testing.T, header string, hops int) {
		r := &http.Request{Header: http.Header{"X-Forwarded-For": {header}}, RemoteAddr: "192.0.2.1:1"}
		if got := clientIP(r, hops); !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Fatalf("%q with %d hops is %s", header, hops, got)
		}
	})
}
