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
	remembered = 8_192 // addresses per instance
	atOnce     = 4     // look-ups under way per instance; claims beyond are not looked up until there is room
	patience   = 2 * time.Second

	// Lives of an answer. An address changes hands rarely; a refusal may be an engine's new network; a failure is no answer.
	lifeVerified = 24 * time.Hour
	lifeRefused  = 10 * time.Minute
	lifeFailed   = time.Minute
)

// Verifier remembers what the DNS said of the last addresses, in this process alone: an address has no place in Redis, and
// an instance more asks once more. Safe for concurrent use.
type Verifier struct {
	dns    Resolver
	now    func() time.Time
	room   chan struct{} // one place per look-up under way
	under  sync.WaitGroup
	lock   sync.Mutex // so that one claim begins one look-up
	answer *lru.Cache[claim, answer]
	lines  map[netip.Prefix]bool // that have a look-up under way
}

// claim is what a client says that it is, and from where it says so.
type claim struct {
	engine string
	addr   netip.Addr
}

type answer struct {
	verified bool
	until    time.Time // asked again then; while it is asked it stands
	asking   bool
}

// New makes a Verifier.
func New(dns Resolver, now func() time.Time) *Verifier {
	known, err := lru.New[claim, answer](remembered)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Verifier{
		dns: dns, now: now, room: make(chan struct{}, atOnce), answer: known, lines: map[netip.Prefix]bool{},
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
	if published().has(engine, addr) {
		return true
	}
	if len(names[engine]) == 0 {
		return false
	}
	c := claim{engine, addr}
	v.lock.Lock()
	defer v.lock.Unlock()
	known, _ := v.answer.Get(c)
	line := lineOf(addr)
	if known.asking || v.lines[line] || v.now().Before(known.until) {
		return known.verified
	}
	select {
	case v.room <- struct{}{}:
		v.lines[line] = true
		v.answer.Add(c, answer{known.verified, known.until, true})
		v.under.Go(func() { v.ask(c, known.verified) })
	default: // as many as may be are under way; the next request of this client tries again
	}
	return known.verified
}

// lineOf is what one owner has of addresses like this one. It has one look-up at a time: whoever owns a line owns its
// reverse zone, and with answers that never come could keep all places taken, so that no crawler is verified.
func lineOf(addr netip.Addr) netip.Prefix {
	bits := 24
	if addr.Is6() {
		bits = 48
	}
	line, _ := addr.Prefix(bits) // unreachable error: it is no longer than an address
	return line
}

// ask outlives its request: losing it costs another look-up. A failure leaves what was known for a while.
func (v *Verifier) ask(c claim, before bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found := answer{}
	verified, err := confirm(ctx, v.dns, c)
	switch {
	case err != nil:
		found = answer{verified: before, until: v.now().Add(lifeFailed)}
	case verified:
		found = answer{verified: true, until: v.now().Add(lifeVerified)}
	default:
		found = answer{until: v.now().Add(lifeRefused)}
	}
	v.lock.Lock()
	v.answer.Add(c, found)
	delete(v.lines, lineOf(c.addr))
	v.lock.Unlock()
	<-v.room
}
