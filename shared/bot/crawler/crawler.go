// Package crawler verifies search engine crawlers: a client that claims to be a crawler must have
// an address of the engine, by the engine's published ranges or by forward-confirmed reverse DNS. A
// request never waits for the DNS. The package does not decide about unverified clients.
package crawler

import (
	"context"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Resolver makes DNS lookups. *net.Resolver implements it.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	maxCachedClaims = 8_192 // per instance
	maxLookups      = 4     // concurrent lookups per instance; further claims wait for a later request
	lookupTimeout   = 2 * time.Second

	// The lives of results. An address rarely changes owners. A rejected address may belong to a
	// new network of the engine. A failed lookup has no result.
	verifiedTTL = 24 * time.Hour
	rejectedTTL = 10 * time.Minute
	failedTTL   = time.Minute
)

// Verifier verifies crawlers and caches the results of DNS lookups in memory, at most 8,192 per
// instance. The cache is not in Redis, because client addresses must not be stored in Redis; each
// instance makes separate lookups. Safe for concurrent use.
type Verifier struct {
	dns            Resolver
	now            func() time.Time
	slots          chan struct{} // holds one element per running lookup
	lookups        sync.WaitGroup
	mu             sync.Mutex // makes the start of a lookup atomic
	results        *lru.Cache[claim, result]
	activeNetworks map[netip.Prefix]bool // networks with a running lookup
}

// claim is the engine that a client claims to be, and the client's address.
type claim struct {
	engine string
	addr   netip.Addr
}

// result is the result of a claim.
type result struct {
	verified bool
	expires  time.Time // then a request starts another lookup; the result is valid until its end
	pending  bool      // a lookup is running
}

// New returns a Verifier, makes no lookup and never fails. dns and now must not be nil: a nil dns
// panics in the background at the first lookup. dns must be safe for concurrent use.
func New(dns Resolver, now func() time.Time) *Verifier {
	results, err := lru.New[claim, result](maxCachedClaims)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Verifier{
		dns: dns, now: now, slots: make(chan struct{}, maxLookups), results: results, activeNetworks: map[netip.Prefix]bool{},
	}
}

// Verified reports whether addr is an address of the crawler of engine,
// agent.Classification.Crawler; an empty or unknown engine and an invalid addr are never verified.
// An address is verified by a published range of the engine, or by a host name of the engine that
// resolves to the address.
//
// Verified never waits for the DNS and never fails. The cost is some map reads, for an address
// outside the ranges under a mutex of the Verifier; the first call with an engine also parses the
// ranges, and concurrent calls wait for that. A lookup (one reverse, up to four forward) runs in
// the background for at most 2 s, and the first request of an address is not verified by host name
// yet. At most 4 lookups run per instance, and one per network (/24 or /48). A result is valid for
// 24 hours if verified, else for 10 minutes; an older result counts until the next lookup ends. If
// the DNS fails, the previous result stays valid for a minute; a new address is not verified.
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
	network := networkOf(addr)
	if known.pending || v.activeNetworks[network] || v.now().Before(known.expires) {
		return known.verified
	}
	select {
	case v.slots <- struct{}{}:
		v.activeNetworks[network] = true
		v.results.Add(c, result{known.verified, known.expires, true})
		v.lookups.Go(func() { v.lookup(c, known.verified) })
	default: // maxLookups are running; the next request of this client tries again
	}
	return known.verified
}

// networkOf returns the network of an address that probably has one owner. Each network has one
// lookup at a time: the owner of a network controls the reverse zone, and could otherwise occupy
// all slots with answers that never come: then no crawler would be verified.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := 24
	if addr.Is6() {
		bits = 48
	}
	network, _ := addr.Prefix(bits) // unreachable error: bits is no longer than an address
	return network
}

// lookup resolves a claim and stores the result. A lookup outlives its request; if the instance
// ends, a later request starts another lookup. After a DNS failure the previous result stays for
// failedTTL.
func (v *Verifier) lookup(c claim, previous bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found := result{}
	verified, err := forwardConfirm(ctx, v.dns, c)
	switch {
	case err != nil:
		found = result{verified: previous, expires: v.now().Add(failedTTL)}
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
