// Package crawler verifies search engines: that a client which claims to be one comes from where the engine says that its
// crawler does. It decides nothing about those it cannot verify, and never makes a request wait.
package crawler

import (
	"context"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Resolver asks the DNS. *net.Resolver is one.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	maxCachedClaims = 8_192 // addresses per instance
	maxLookups      = 4     // look-ups under way per instance; claims beyond are not looked up until there is room
	lookupTimeout   = 2 * time.Second

	// Lives of an answer. An address changes hands rarely; a refusal may be an engine's new network; a failure is no answer.
	verifiedTTL = 24 * time.Hour
	rejectedTTL = 10 * time.Minute
	failedTTL   = time.Minute
)

// Verifier remembers what the DNS said of the last addresses, in this process alone: an address has no place in Redis, and
// an instance more asks once more. Safe for concurrent use.
type Verifier struct {
	dns            Resolver
	now            func() time.Time
	slots          chan struct{} // one place per look-up under way
	lookups        sync.WaitGroup
	mu             sync.Mutex // so that one claim begins one look-up
	results        *lru.Cache[claim, result]
	activeNetworks map[netip.Prefix]bool // that have a look-up under way
}

// claim is what a client says that it is, and from where it says so.
type claim struct {
	engine string
	addr   netip.Addr
}

type result struct {
	verified bool
	expires  time.Time // asked again then; while it is asked it stands
	pending  bool
}

// New makes a Verifier.
func New(dns Resolver, now func() time.Time) *Verifier {
	known, err := lru.New[claim, result](maxCachedClaims)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Verifier{
		dns: dns, now: now, slots: make(chan struct{}, maxLookups), results: known, activeNetworks: map[netip.Prefix]bool{},
	}
}

// Verified says whether a client at addr is the engine that it claims to be (agent.Judgement.Crawler; empty: none). It is
// so in an address range that the engine publishes, or when the address has a name of the engine and the name has the
// address. Names are looked up beside the request, so the first one of an address is not verified by its name yet, nor is
// any while the DNS fails.
func (v *Verifier) Verified(engine string, addr netip.Addr) bool {
	if engine == "" || !addr.IsValid() {
		return false
	}
	addr = addr.Unmap().WithZone("")
	if publishedRanges().contains(engine, addr) {
		return true
	}
	if len(crawlerHosts[engine]) == 0 {
		return false
	}
	c := claim{engine, addr}
	v.mu.Lock()
	defer v.mu.Unlock()
	known, _ := v.results.Get(c)
	line := networkOf(addr)
	if known.pending || v.activeNetworks[line] || v.now().Before(known.expires) {
		return known.verified
	}
	select {
	case v.slots <- struct{}{}:
		v.activeNetworks[line] = true
		v.results.Add(c, result{known.verified, known.expires, true})
		v.lookups.Go(func() { v.lookup(c, known.verified) })
	default: // as many as may be are under way; the next request of this client tries again
	}
	return known.verified
}

// networkOf is what one owner has of addresses like this one. It has one look-up at a time: whoever owns a line owns its
// reverse zone, and with answers that never come could keep all places taken, so that no crawler is verified.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := 24
	if addr.Is6() {
		bits = 48
	}
	line, _ := addr.Prefix(bits) // unreachable error: it is no longer than an address
	return line
}

// lookup outlives its request: losing it costs another look-up. A failure leaves what was known for a while.
func (v *Verifier) lookup(c claim, before bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found := result{}
	verified, err := forwardConfirm(ctx, v.dns, c)
	switch {
	case err != nil:
		found = result{verified: before, expires: v.now().Add(failedTTL)}
	case verified:
		found = result{verified: true, expires: v.now().Add(verifiedTTL)}
	default:
		found = result{expires: v.now().Add(rejectedTTL)}
	}
	v.mu.Lock()
	v.results.Add(c, found)
	delete(v.activeNetworks, networkOf(c.addr))
	v.mu.Unlock()
	<-v.slots
}
