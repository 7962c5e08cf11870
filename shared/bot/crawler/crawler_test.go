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

// fakeDNS is a DNS of names by address and addresses by name. What is in neither does not exist.
type fakeDNS struct {
	names     map[string][]string
	addresses map[string][]string
	failing   error
	queries   atomic.Int32
	hold      chan struct{} // if not nil, no answer until it is closed
}

func (z *fakeDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	z.queries.Add(1)
	if z.hold != nil {
		<-z.hold
	}
	if z.failing != nil {
		return nil, z.failing
	}
	return z.names[addr], notFoundIfZero(len(z.names[addr]))
}

func (z *fakeDNS) LookupNetIP(_ context.Context, _, host string) (found []netip.Addr, err error) {
	if z.failing != nil {
		return nil, z.failing
	}
	for _, a := range z.addresses[host] {
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

func newVerifier(z *fakeDNS) (*Verifier, *clock) {
	c := &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	return New(z, c.now), c
}

// verifyTwice is what a second request finds, when the look-up of the first is over.
func verifyTwice(v *Verifier, engine, addr string) (first, second bool) {
	a := netip.MustParseAddr(addr)
	first = v.Verified(engine, a)
	v.lookups.Wait()
	return first, v.Verified(engine, a)
}

func TestVerified_PublishedRangeNeedsNoDNS(t *testing.T) {
	z := &fakeDNS{failing: errors.New("no DNS")}
	v, _ := newVerifier(z)
	for addr, engine := range map[string]string{
		"66.249.66.1": "googlebot", "::ffff:66.249.66.1": "googlebot", "2001:4860:4801:10::1": "googlebot",
		"40.77.167.1": "bingbot", "20.191.45.212": "duckduckbot",
	} {
		if !v.Verified(engine, netip.MustParseAddr(addr)) {
			t.Errorf("%s is not %s", addr, engine)
		}
	}
	if z.queries.Load() != 0 {
		t.Errorf("the DNS was asked %d times", z.queries.Load())
	}
}

func TestVerified_RejectsOtherAddresses(t *testing.T) {
	v, _ := newVerifier(&fakeDNS{})
	for _, c := range []struct{ engine, addr string }{
		{"googlebot", "203.0.113.9"}, {"googlebot", "40.77.167.1"}, {"bingbot", "66.249.66.1"}, {"googlebot", "2001:db8::1"},
		{"", "66.249.66.1"}, {"acme", "66.249.66.1"}, {"duckduckbot", "203.0.113.9"},
	} {
		if first, second := verifyTwice(v, c.engine, c.addr); first || second {
			t.Errorf("%+v: %v, %v", c, first, second)
		}
	}
	if v.Verified("googlebot", netip.Addr{}) {
		t.Error("no address is verified")
	}
}

func TestVerified_RequiresForwardConfirmedName(t *testing.T) {
	const addr = "203.0.113.9"
	for what, c := range map[string]struct {
		engine, name, back string
		want               bool
	}{
		"an engine":                 {"applebot", "17-58-1-2.applebot.apple.com.", addr, true},
		"in capitals":               {"yandex", "Spider-1.YANDEX.com.", addr, true},
		"Google's for ads":          {"googlebot", "rate-limited-proxy-203-0-113-9.google.com.", addr, true},
		"whoever writes his name":   {"googlebot", "crawl-203-0-113-9.googlebot.com.", "66.249.66.1", false},
		"a name of nobody":          {"googlebot", "crawl-203-0-113-9.googlebot.com.", "", false},
		"one that ends like it":     {"yandex", "notyandex.com.", addr, false},
		"one that has it inside":    {"applebot", "1.applebot.apple.com.evil.example.", addr, false},
		"another engine":            {"bingbot", "17-58-1-2.applebot.apple.com.", addr, false},
		"what people make it fetch": {"googlebot", "google-proxy-203-0-113-9.google.com.", addr, false},
		"a user's own cloud":        {"googlebot", "9.113.0.203.bc.googleusercontent.com.", addr, false},
	} {
		z := &fakeDNS{names: map[string][]string{addr: {"other.example.", c.name}}, addresses: map[string][]string{}}
		if c.back != "" {
			z.addresses[c.name] = []string{"198.51.100.1", c.back}
		}
		v, _ := newVerifier(z)
		if first, second := verifyTwice(v, c.engine, addr); first || second != c.want {
			t.Errorf("%s: %v, then %v", what, first, second)
		}
	}
}

func TestVerified_CachedResultExpires(t *testing.T) {
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	good := &fakeDNS{names: map[string][]string{addr: {name}}, addresses: map[string][]string{name: {addr}}}
	v, c := newVerifier(good)
	verifyTwice(v, "applebot", addr)
	c.time = c.time.Add(verifiedTTL - time.Second)
	if _, ok := verifyTwice(v, "applebot", addr); !ok || good.queries.Load() != 1 {
		t.Errorf("asked %d times within a life", good.queries.Load())
	}
	good.failing = errors.New("timeout") // what was known stands while the DNS is away
	c.time = c.time.Add(2 * time.Second)
	if first, second := verifyTwice(v, "applebot", addr); !first || !second || good.queries.Load() != 2 {
		t.Errorf("%v, %v, asked %d times", first, second, good.queries.Load())
	}
	c.time = c.time.Add(failedTTL)
	good.failing, good.names = nil, nil // the address is another's now
	if first, second := verifyTwice(v, "applebot", addr); !first || second || good.queries.Load() != 3 {
		t.Errorf("%v, %v, asked %d times", first, second, good.queries.Load())
	}
}

func TestVerified_DNSFailureKeepsPreviousResult(t *testing.T) {
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	z := &fakeDNS{failing: errors.New("timeout")}
	v, c := newVerifier(z)
	if first, second := verifyTwice(v, "applebot", addr); first || second || z.queries.Load() != 1 {
		t.Errorf("%v, %v, asked %d times", first, second, z.queries.Load())
	}
	z.failing, z.names, z.addresses = nil, map[string][]string{addr: {name}}, map[string][]string{name: {addr}}
	c.time = c.time.Add(failedTTL)
	if first, second := verifyTwice(v, "applebot", addr); first || !second {
		t.Errorf("%v, %v", first, second)
	}
}

func TestVerified_NeverWaitsAndLimitsLookups(t *testing.T) {
	z := &fakeDNS{hold: make(chan struct{})}
	v, _ := newVerifier(z)
	for i := range byte(50) {
		for range 2 {
			if v.Verified("applebot", netip.AddrFrom4([4]byte{203, 0, i, 1})) {
				t.Fatal("verified by nothing")
			}
		}
	}
	if n := v.results.Len(); n != maxLookups {
		t.Errorf("%d look-ups are under way, want %d", n, maxLookups)
	}
	close(z.hold)
	v.lookups.Wait()
}

// slowDNS is a zone in which the addresses of one owner have no answer until they are let go.
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

// Whoever has a /48 has its reverse zone, and may let it answer late: the places for look-ups are not all his.
func TestVerified_OneNetworkCannotTakeAllSlots(t *testing.T) {
	const addr, name = "203.0.113.9", "1.applebot.apple.com."
	for _, owner := range []string{"2001:db8:7::/48", "198.51.100.0/24"} {
		z := &slowDNS{fakeDNS{
			names: map[string][]string{addr: {name}}, addresses: map[string][]string{name: {addr}}, hold: make(chan struct{}),
		}, netip.MustParsePrefix(owner)}
		v := New(z, time.Now)
		theirs := z.owner.Addr()
		for range 3 * maxLookups {
			theirs = theirs.Next()
			v.Verified("applebot", theirs)
		}
		apple := netip.MustParseAddr(addr)
		v.Verified("applebot", apple)
		if known, asked := v.results.Peek(claim{"applebot", apple}); !asked {
			t.Errorf("%s: nobody asks for the crawler: %+v", owner, known)
		}
		close(z.hold)
		v.lookups.Wait()
		if !v.Verified("applebot", apple) {
			t.Errorf("%s: not verified", owner)
		}
	}
}

// Every range of the list can be read, and the list has what the engines publish.
func TestRanges_ListIsComplete(t *testing.T) {
	has := parseRanges(rangeList)
	for _, engine := range []string{"googlebot", "bingbot", "duckduckbot"} {
		if has[engine] == nil || len(has[engine].prefixes) < 20 {
			t.Errorf("%s has no ranges", engine)
		}
	}
	for engine, of := range has {
		for p := range of.prefixes {
			if p != p.Masked() || p.Addr().IsPrivate() {
				t.Errorf("%s has %v", engine, p)
			}
		}
	}
}

func TestRanges_ReferenceRangesAreVerified(t *testing.T) {
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
				t.Errorf("%v is not %s", p, engine)
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
