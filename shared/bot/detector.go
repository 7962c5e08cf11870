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
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

const (
	maxRequestTimes = 512 // of a client group's requests, and of a session's: more than any pace that is told apart
	maxSessions     = 256 // of a client group: more than weigh the most
	sessionsTTL     = 24 * time.Hour
)

// Detector observes. Safe for concurrent use.
type Detector struct {
	keys     redisclient.Keys
	crawlers *crawler.Verifier
	now      func() time.Time
	recorded *lru.Cache[recorded, minute]
	budget   budget
}

// New makes a Room.
func New(keys redisclient.Keys, crawlers *crawler.Verifier, now func() time.Time) *Detector {
	known, err := lru.New[recorded, minute](maxRecorded)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Detector{keys: keys, crawlers: crawlers, now: now, recorded: known}
}

// Client is who asks, by hashes.
type Client struct {
	Fingerprint string // sha256:<hex>; session.Visit.Fingerprint
	Address     string // sha256:<hex> of the address group; session.Visit.IPHash
	Session     string // genuine id of the cookie, whoever it was given to; empty: none, or not read on this route
}

// groupKey is what the client's fingerprint and address group are called together: 32 hex digits of what are hashes already.
func (c Client) groupKey() string { return shortHash(c.Fingerprint + " " + c.Address) }

// shortHash names something where its own name should not stand: 32 hex digits.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// Pending is what Peek asked Redis.
type Pending struct {
	hasCookie bool
	cadence   lua.CadenceCmd
	sessions  *redis.IntCmd
	replays   *redis.StringCmd
}

// Enqueue puts what Redis knows of a client on the caller's pipeline, which lua.Exec runs: one script and two reads. With
// count the request is counted into the client's cadence; routes that are called by the dozen for one page look only.
func (r *Detector) Enqueue(ctx context.Context, pipe redis.Pipeliner, c Client, count bool) *Pending {
	now, group := r.now(), c.groupKey()
	keys := lua.CadenceKeys{Group: r.keys.Cadence(group), Cookie: r.keys.CadencePart(group, "cookie")}
	if c.Session != "" {
		keys.Session = r.sessionKey(group, c.Session)
	}
	since := strconv.FormatInt(now.Add(-sessionsTTL).UnixMilli(), 10)
	return &Pending{
		hasCookie: c.Session != "",
		cadence:   lua.RecordCadence(ctx, pipe, keys, now, count, lua.Windows{Short: ShortWindow, Long: LongWindow, MaxTimes: maxRequestTimes}),
		sessions:  pipe.ZCount(ctx, r.keys.GroupSessions(group), since, "+inf"),
		replays:   pipe.Get(ctx, r.keys.Penalty(c.Fingerprint)),
	}
}

// sessionKey names the times of a session's requests by a mark: a guest who has the session cleared leaves no id of it here.
func (r *Detector) sessionKey(group, session string) string {
	return r.keys.CadencePart(group, "own", shortHash(session))
}

// Request is what a request says of itself.
type Request struct {
	Header         http.Header
	Address        netip.Addr // the client's; it goes no further than this process and the DNS
	CookieMismatch bool       // the session's cookie was given to another browser or system
	Campaign       bool
}

// Resolve puts the evidence together once the pipeline of Peek has run. What Redis did not answer is missing; a nil read
// is one that was never asked.
func (r *Detector) Resolve(read *Pending, req Request) Evidence {
	judged := agent.Classify(req.Header.Get("User-Agent"))
	return Evidence{
		Agent: judged, Verified: r.crawlers.Verified(judged.Crawler, req.Address),
		Anomaly: agent.Anomaly(req.Header), CookieMismatch: req.CookieMismatch, Campaign: req.Campaign, History: read.history(),
	}
}

func (read *Pending) history() (s History) {
	if read == nil {
		return s
	}
	if n, err := read.cadence.Result(); err == nil {
		s.Cadence = Cadence{
			Group: RequestCounts{n.Group[0], n.Group[1]}, Session: RequestCounts{n.Session[0], n.Session[1]}, HasCookie: read.hasCookie, SinceCookie: n.SinceCookie,
		}
	}
	s.Sessions = int(read.sessions.Val()) // 0 on any error, as is
	s.Replays, _ = read.replays.Int()     // the absence of the count
	return s
}

// EnqueueSessionStart puts the note that a session began on the caller's pipeline, which lua.Exec runs, with what is saved of it. The
// client is that of the request that began it.
func (r *Detector) EnqueueSessionStart(ctx context.Context, pipe redis.Pipeliner, c Client, session string) {
	group := c.groupKey()
	lua.RecordGroupSession(ctx, pipe, r.keys.GroupSessions(group), r.sessionKey(group, session), shortHash(session), r.now(),
		maxSessions, sessionsTTL, LongWindow)
}
