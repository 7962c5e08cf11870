package crawler

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// fakeDNS is a Resolver with host names by address and addresses by host name. All other names do
// not exist.
type fakeDNS struct {
	names     map[string][]string
	addresses map[string][]string
	failing   error
	queries   atomic.Int32
	hold      chan struct{} // if not nil, lookups wait until the channel is closed
}

func (dns *fakeDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	dns.queries.Add(1)
	if dns.hold != nil {
		<-dns.hold
	}
	if dns.failing != nil {
		return nil, dns.failing
	}
	return dns.names[addr], notFoundIfZero(len(dns.names[addr]))
}

func (dns *fakeDNS) LookupNetIP(_ context.Context, _, host string) (found []netip.Addr, err error) {
	if dns.failing != nil {
		return nil, dns.failing
	}
	for _, a := range dns.addresses[host] {
		found = append(found, netip.MustParseAddr(a))
	}
	return found, notFoundIfZero(len(found))
}

func notFoundIfZero(n int) error {
	if n > 0 {
		return nil
	}
	return &net.DNSError{Err: "no such host", IsNotFound: true}
}

type clock struct{ time time.Time }

func (c *clock) now() time.Time { return c.time }

func newVerifier(dns *fakeDNS) (*Verifier, *clock) {
	c := &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	return New(dns, c.now), c
}

// verifyTwice returns the results of two requests. The lookup of the first request ends before the
// second.
func verifyTwice(v *Verifier, engine, addr string) (first, second bool) {
	a := netip.MustParseAddr(addr)
	first = v.Verified(engine, a)
	v.lookups.Wait()
	return first, v.Verified(engine, a)
}

func TestVerifierVerified_PublishedRangeNeedsNoDNS(t *testing.T) {
	t.Parallel()
	dns := &fakeDNS{failing: errors.New("no DNS")}
	v, _ := newVerifier(dns)
	for addr, engine := range map[string]string{
		"66.249.66.1": "googlebot", "::ffff:66.249.66.1": "googlebot", "2001:4860:4801:10::1": "googlebot",
		"40.77.167.1": "bingbot", "20.191.45.212": "duckduckbot",
	} {
		t.Run(addr, func(t *testing.T) {
			if !v.Verified(engine, netip.MustParseAddr(addr)) {
				t.Errorf("not verified as %s", engine)
			}
		})
	}
	if dns.queries.Load() != 0 {
		t.Errorf("%d DNS queries, want 0", dns.queries.Load())
	}
}

func TestVerifierVerified_RejectsOtherAddresses(t *testing.T) {
	t.Parallel()
	v, _ := newVerifier(&fakeDNS{})
	for _, c := range []struct{ engine, addr string }{
		{"googlebot", "203.0.113.9"}, {"googlebot", "40.77.167.1"}, {"bingbot", "66.249.66.1"}, {"googlebot", "2001:db8::1"},
		{"", "66.249.66.1"}, {"acme", "66.249.66.1"}, {"duckduckbot", "203.0.113.9"},
	} {
		t.Run(c.engine+" "+c.addr, func(t *testing.T) {
			if first, second := verifyTwice(v, c.engine, c.addr); first || second {
				t.Errorf("verified %t, then %t; want false", first, second)
			}
		})
	}
	if v.Verified("googlebot", netip.Addr{}) {
		t.Error("the zero address is verified")
	}
}

func TestVerifierVerified_RequiresForwardConfirmedName(t *testing.T) {
	t.Parallel()
	const addr = "203.0.113.9"
	for name, c := range map[string]struct {
		engine, name, back string
		want               bool
	}{
		"a crawler":                {"applebot", "17-58-1-2.applebot.apple.com.", addr, true},
		"capital letters":          {"yandex", "Spider-1.YANDEX.com.", addr, true},
		"Google's ads crawler":     {"googlebot", "rate-limited-proxy-203-0-113-9.google.com.", addr, true},
		"name of another address":  {"googlebot", "crawl-203-0-113-9.googlebot.com.", "66.249.66.1", false},
		"name without address":     {"googlebot", "crawl-203-0-113-9.googlebot.com.", "", false},
		"same suffix":              {"yandex", "notyandex.com.", addr, false},
		"pattern inside the name":  {"applebot", "1.applebot.apple.com.evil.example.", addr, false},
		"another engine":           {"bingbot", "17-58-1-2.applebot.apple.com.", addr, false},
		"user-triggered fetch":     {"googlebot", "google-proxy-203-0-113-9.google.com.", addr, false},
		"host of a cloud customer": {"googlebot", "9.113.0.203.bc.googleusercontent.com.", addr, false},
	} {
		t.Run(name, func(t *testing.T) {
			dns := &fakeDNS{names: map[string][]string{addr: {"other.example.", c.name}}, addresses: map[string][]string{}}
			if c.back != "" {
				dns.addresses[c.name] = []string{"198.51.100.1", c.back}
			}
			v, _ := newVerifier(dns)
			if first, second := verifyTwice(v, c.engine, addr); first || second != c.want {
				t.Errorf("verified %t, then %t; want false, then %t", first, second, c.want)
			}
		})
	}
}

func TestVerifierVerified_CachedResultExpires(t *testing.T) {
	t.Parallel()
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	good := &fakeDNS{names: map[string][]string{addr: {name}}, addresses: map[string][]string{name: {addr}}}
	v, c := newVerifier(good)
	verifyTwice(v, "applebot", addr)
	c.time = c.time.Add(verifiedTTL - time.Second)
	if _, ok := verifyTwice(v, "applebot", addr); !ok || good.queries.Load() != 1 {
		t.Errorf("within verifiedTTL: verified %t with %d DNS queries, want true with 1", ok, good.queries.Load())
	}
	good.failing = errors.New("timeout") // the previous result stays while the DNS fails
	c.time = c.time.Add(2 * time.Second)
	if first, second := verifyTwice(v, "applebot", addr); !first || !second || good.queries.Load() != 2 {
		t.Errorf("while the DNS fails: verified %t, then %t with %d DNS queries in all; want true, true, 2", first, second, good.queries.Load())
	}
	c.time = c.time.Add(failedTTL)
	good.failing, good.names = nil, nil // the address has another owner now
	if first, second := verifyTwice(v, "applebot", addr); !first || second || good.queries.Load() != 3 {
		t.Errorf("after the name is gone: verified %t, then %t with %d DNS queries in all; want true, false, 3", first, second, good.queries.Load())
	}
}

func TestVerifierVerified_DNSFailureKeepsPreviousResult(t *testing.T) {
	t.Parallel()
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	dns := &fakeDNS{failing: errors.New("timeout")}
	v, c := newVerifier(dns)
	if first, second := verifyTwice(v, "applebot", addr); first || second || dns.queries.Load() != 1 {
		t.Errorf("while the DNS fails: verified %t, then %t with %d DNS queries; want false, false, 1", first, second, dns.queries.Load())
	}
	dns.failing, dns.names, dns.addresses = nil, map[string][]string{addr: {name}}, map[string][]string{name: {addr}}
	c.time = c.time.Add(failedTTL)
	if first, second := verifyTwice(v, "applebot", addr); first || !second {
		t.Errorf("after failedTTL: verified %t, then %t; want false, true", first, second)
	}
}

func TestVerifierVerified_NeverWaitsAndLimitsLookups(t *testing.T) {
	t.Parallel()
	dns := &fakeDNS{hold: make(chan struct{})}
	v, _ := newVerifier(dns)
	for i := range byte(50) {
		for range 2 {
			if v.Verified("applebot", netip.AddrFrom4([4]byte{203, 0, i, 1})) {
				t.Fatal("verified without an answer of the DNS")
			}
		}
	}
	if n := v.results.Len(); n != maxLookups {
		t.Errorf("%d lookups started, want %d", n, maxLookups)
	}
	close(dns.hold)
	v.lookups.Wait()
}

// slowDNS is a fakeDNS in which lookups of one owner's addresses wait until hold is closed.
type slowDNS struct {
	fakeDNS
	owner netip.Prefix
}

func (s *slowDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if s.owner.Contains(netip.MustParseAddr(addr)) {
		<-s.hold
		return nil, errors.New("timeout")
	}
	return s.names[addr], notFoundIfZero(len(s.names[addr]))
}

// The owner of a /48 controls its reverse zone and may delay the answers. The owner must not occupy
// all lookup slots.
func TestVerifierVerified_OneNetworkCannotTakeAllSlots(t *testing.T) {
	t.Parallel()
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	for _, owner := range []string{"2001:db8:7::/48", "198.51.100.0/24"} {
		t.Run(owner, func(t *testing.T) {
			dns := &slowDNS{fakeDNS{
				names: map[string][]string{addr: {name}}, addresses: map[string][]string{name: {addr}}, hold: make(chan struct{}),
			}, netip.MustParsePrefix(owner)}
			v := New(dns, time.Now)
			slow := dns.owner.Addr()
			for range 3 * maxLookups {
				slow = slow.Next()
				v.Verified("applebot", slow)
			}
			apple := netip.MustParseAddr(addr)
			v.Verified("applebot", apple)
			if known, started := v.results.Peek(claim{"applebot", apple}); !started {
				t.Errorf("no lookup for the crawler: %+v", known)
			}
			close(dns.hold)
			v.lookups.Wait()
			if !v.Verified("applebot", apple) {
				t.Error("the crawler is not verified")
			}
		})
	}
}

// Every range of the list is valid, and every engine that publishes ranges has some.
func TestRanges_ListIsComplete(t *testing.T) {
	t.Parallel()
	has := parseRanges(rangeList)
	for _, engine := range []string{"googlebot", "bingbot", "duckduckbot"} {
		t.Run(engine, func(t *testing.T) {
			if has[engine] == nil || len(has[engine].prefixes) < 20 {
				t.Errorf("%+v, want at least 20 ranges", has[engine])
			}
		})
	}
	for engine, of := range has {
		for p := range of.prefixes {
			if p != p.Masked() || p.Addr().IsPrivate() {
				t.Errorf("%s: invalid range %v", engine, p)
			}
		}
	}
}

func TestRanges_ReferenceRangesAreVerified(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "useragents", "verified-bot-ranges.json"))
	if err != nil {
		t.Skip(err)
	}
	var ranges map[string][]netip.Prefix
	if err := json.Unmarshal(content, &ranges); err != nil {
		t.Fatal(err)
	}
	v, _ := newVerifier(&fakeDNS{})
	for of, engine := range map[string]string{"googlebot": "googlebot", "bing": "bingbot", "duckduckbot": "duckduckbot"} {
		for _, p := range ranges[of] {
			if !v.Verified(engine, p.Addr()) {
				t.Errorf("%v is not verified as %s", p, engine)
			}
		}
	}
}

func BenchmarkVerified(b *testing.B) {
	v, _ := newVerifier(&fakeDNS{})
	addr := netip.MustParseAddr("66.249.66.1")
	for b.Loop() {
		v.Verified("googlebot", addr)
	}
}
