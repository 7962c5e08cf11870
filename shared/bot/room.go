package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/crawler"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const (
	timesKept    = 512 // of a client group's requests, and of a session's: more than any pace that is told apart
	sessionsKept = 256 // of a client group: more than weigh the most
	sessionsLife = 24 * time.Hour
)

// Room observes. Safe for concurrent use.
type Room struct {
	keys     keyspace.Keys
	crawlers *crawler.Verifier
	now      func() time.Time
	told     *lru.Cache[told, minute]
	budget   budget
}

// New makes a Room.
func New(keys keyspace.Keys, crawlers *crawler.Verifier, now func() time.Time) *Room {
	known, err := lru.New[told, minute](toldKept)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Room{keys: keys, crawlers: crawlers, now: now, told: known}
}

// Client is who asks, by hashes.
type Client struct {
	Fingerprint string // sha256:<hex>; session.Visit.Fingerprint
	Address     string // sha256:<hex> of the address group; session.Visit.IPHash
	Session     string // genuine id of the cookie, whoever it was given to; empty: none, or not read on this route
}

// group is what the client's fingerprint and address group are called together: 32 hex digits of what are hashes already.
func (c Client) group() string { return mark(c.Fingerprint + " " + c.Address) }

// mark names something where its own name should not stand: 32 hex digits.
func mark(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// Read is what Peek asked Redis.
type Read struct {
	cookie   bool
	counted  lua.Counted
	sessions *redis.IntCmd
	replays  *redis.StringCmd
}

// Peek puts what Redis knows of a client on the caller's pipeline, which lua.Exec runs: one script and two reads. With
// count the request is counted into the client's cadence; routes that are called by the dozen for one page look only.
func (r *Room) Peek(ctx context.Context, pipe redis.Pipeliner, c Client, count bool) *Read {
	now, group := r.now(), c.group()
	keys := lua.CadenceKeys{Group: r.keys.Cadence(group), Cookie: r.keys.CadencePart(group, "cookie")}
	if c.Session != "" {
		keys.Own = r.own(group, c.Session)
	}
	since := strconv.FormatInt(now.Add(-sessionsLife).UnixMilli(), 10)
	return &Read{
		cookie:   c.Session != "",
		counted:  lua.Cadence(ctx, pipe, keys, now, count, lua.Windows{Short: Short, Long: Long, Kept: timesKept}),
		sessions: pipe.ZCount(ctx, r.keys.Collisions(group), since, "+inf"),
		replays:  pipe.Get(ctx, r.keys.Penalty(c.Fingerprint)),
	}
}

// own names the times of a session's requests by a mark: a guest who has the session cleared leaves no id of it here.
func (r *Room) own(group, session string) string {
	return r.keys.CadencePart(group, "own", mark(session))
}

// Request is what a request says of itself.
type Request struct {
	Header        http.Header
	Address       netip.Addr // the client's; it goes no further than this process and the DNS
	ForeignCookie bool       // the session's cookie was given to another browser or system
	Campaign      bool
}

// Settle puts the evidence together once the pipeline of Peek has run. What Redis did not answer is missing; a nil read
// is one that was never asked.
func (r *Room) Settle(read *Read, req Request) Evidence {
	judged := agent.Judge(req.Header.Get("User-Agent"))
	return Evidence{
		Agent: judged, Verified: r.crawlers.Verified(judged.Crawler, req.Address),
		Anomaly: agent.Anomaly(req.Header), ForeignCookie: req.ForeignCookie, Campaign: req.Campaign, Seen: read.seen(),
	}
}

func (read *Read) seen() (s Seen) {
	if read == nil {
		return s
	}
	if n, err := read.counted.Result(); err == nil {
		s.Cadence = Cadence{
			Group: Pace{n.Group[0], n.Group[1]}, Own: Pace{n.Own[0], n.Own[1]}, Cookie: read.cookie, SinceCookie: n.SinceCookie,
		}
	}
	s.Sessions = int(read.sessions.Val()) // 0 on any error, as is
	s.Replays, _ = read.replays.Int()     // the absence of the count
	return s
}

// Began puts the note that a session began on the caller's pipeline, which lua.Exec runs, with what is saved of it. The
// client is that of the request that began it.
func (r *Room) Began(ctx context.Context, pipe redis.Pipeliner, c Client, session string) {
	group := c.group()
	lua.Collide(ctx, pipe, r.keys.Collisions(group), r.own(group, session), mark(session), r.now(),
		sessionsKept, sessionsLife, Long)
}
