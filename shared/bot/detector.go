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
	maxRequestTimes = 512 // stored request times of a client group, and of a session: above every threshold
	maxSessions     = 256 // stored sessions of a client group: above maxCollisionSessions
	sessionsTTL     = 24 * time.Hour
)

// Detector collects the evidence of requests. Safe for concurrent use.
type Detector struct {
	keys     redisclient.Keys
	crawlers *crawler.Verifier
	now      func() time.Time
	recorded *lru.Cache[recordKey, minute] // minute of the last record
	budget   budget
}

// New returns a Detector, does not dial and never fails. crawlers and now must not be nil. The
// memory of recorded verdicts is bounded to 16,384 keys.
func New(keys redisclient.Keys, crawlers *crawler.Verifier, now func() time.Time) *Detector {
	recorded, err := lru.New[recordKey, minute](maxRecorded)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Detector{keys: keys, crawlers: crawlers, now: now, recorded: recorded}
}

// Client identifies a client by hashes.
type Client struct {
	Fingerprint string // sha256:<hex>; session.Client.Fingerprint
	Address     string // sha256:<hex> of the address group; session.Client.IPHash

	// Session is the id in a cookie with a valid signature, whichever client the cookie was issued
	// to. Empty without a cookie and on routes that do not read the cookie.
	Session string
}

// groupKey returns the name of the client group in Redis keys, 32 hex digits.
func (c Client) groupKey() string { return shortHash(c.Fingerprint + " " + c.Address) }

// shortHash returns 32 hex digits that stand for s where s itself must not be stored.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// Pending is the queued read of a client's history. Pass a Pending to Resolve after the pipeline
// has run.
type Pending struct {
	hasCookie bool
	cadence   lua.CadenceCmd
	sessions  *redis.IntCmd
	replays   *redis.StringCmd
}

// Enqueue queues the read of a client's history on the caller's pipeline, which lua.Exec runs: a
// script and two reads (ZCOUNT, GET), without an additional round trip. With count the script also
// counts the request. Routes that one page calls by the dozen pass false. Enqueue itself does no
// I/O, takes no lock and never fails; the cost is up to two SHA-256.
func (d *Detector) Enqueue(ctx context.Context, pipe redis.Pipeliner, c Client, count bool) *Pending {
	now, group := d.now(), c.groupKey()
	keys := lua.CadenceKeys{Group: d.keys.Cadence(group), Cookie: d.keys.CadencePart(group, "cookie")}
	if c.Session != "" {
		keys.Session = d.sessionKey(group, c.Session)
	}
	since := strconv.FormatInt(now.Add(-sessionsTTL).UnixMilli(), 10)
	return &Pending{
		hasCookie: c.Session != "",
		cadence:   lua.RecordCadence(ctx, pipe, keys, now, count, lua.Windows{Short: ShortWindow, Long: LongWindow, MaxTimes: maxRequestTimes}),
		sessions:  pipe.ZCount(ctx, d.keys.GroupSessions(group), since, "+inf"),
		replays:   pipe.Get(ctx, d.keys.Penalty(c.Fingerprint)),
	}
}

// sessionKey returns the Redis key of the times of a session's requests. The key contains a hash of
// the session id: no id of a cleared session stays in Redis.
func (d *Detector) sessionKey(group, session string) string {
	return d.keys.CadencePart(group, "own", shortHash(session))
}

// Request is the part of a request that is evidence.
type Request struct {
	Header         http.Header
	Address        netip.Addr // client address; only this process and the DNS resolver see it
	CookieMismatch bool       // the session's cookie was issued to another browser or system
	Campaign       bool
}

// Resolve returns the evidence of a request. Call Resolve after the pipeline of Enqueue has run.
// The cost is microseconds and no round trip. The first calls of a process also build the rules of
// agent and crawler, while concurrent first calls wait. The claim of a search engine outside its
// published ranges takes a mutex of the process for some map reads; for an unverified claim a DNS
// lookup may start in the background. Resolve never fails: evidence without an answer from Redis is
// missing, so without Redis only the request counts. pending may be nil if the history was not
// read.
func (d *Detector) Resolve(pending *Pending, req Request) Evidence {
	classified := agent.Classify(req.Header.Get("User-Agent"))
	return Evidence{
		Agent: classified, Verified: d.crawlers.Verified(classified.Crawler, req.Address),
		Anomaly: agent.Anomaly(req.Header), CookieMismatch: req.CookieMismatch, Campaign: req.Campaign, History: pending.history(),
	}
}

// history reads the replies of Redis.
func (p *Pending) history() (h History) {
	if p == nil {
		return h
	}
	if n, err := p.cadence.Result(); err == nil {
		h.Cadence = Cadence{
			Group: RequestCounts{n.Group[0], n.Group[1]}, Session: RequestCounts{n.Session[0], n.Session[1]}, HasCookie: p.hasCookie, SinceCookie: n.SinceCookie,
		}
	}
	h.Sessions = int(p.sessions.Val()) // 0 after an error
	h.Replays, _ = p.replays.Int()     // 0 after an error, and without the key
	return h
}

// EnqueueSessionStart queues the record that a session started, one script, on the caller's
// pipeline, which lua.Exec runs. c is the client of the request that started the session. It does
// no I/O and never fails; an error is an error of the pipeline. Without Redis the session is not
// counted. The same session of a client group counts once in 24 hours.
func (d *Detector) EnqueueSessionStart(ctx context.Context, pipe redis.Pipeliner, c Client, session string) {
	group := c.groupKey()
	lua.RecordGroupSession(ctx, pipe, d.keys.GroupSessions(group), d.sessionKey(group, session), shortHash(session), d.now(),
		maxSessions, sessionsTTL, LongWindow)
}
