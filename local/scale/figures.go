// Package scale owns the capacity model of docs/scale.md and the costs of docs/deploy.md: measured figures of one request
// and an assumed mix of requests go in, tables come out. It never measures: `./dev bench --only costs` does.
package scale

// kind is one way to ask: what one request costs, as `./dev bench --only costs` prints it.
type kind struct {
	name     string
	function string  // as terraform/ calls it
	cpu      float64 // µs of a core, the function's process
	redis    float64 // µs of a core, Redis
	postgres float64 // µs of a core, Postgres
	trips    float64 // to Redis
	commands float64 // of Redis, those inside scripts too
	upstream float64 // calls
	out      float64 // bytes of the answer
	outbox   float64 // rows
	other    float64 // rows of other tables
	wal      float64 // bytes
	writes   float64 // transactions that write
}

// kinds are measured; but for writes, which follows from them: a request that writes does it in one transaction.
var kinds = []kind{
	{"search, first visit", "search", 280, 125, 210, 2.07, 56.5, 0, 4139, 1.1, 0, 2380, 1},
	{"search, hit", "search", 125, 71, 22, 1.09, 38.7, 0, 4133, 0.1, 0, 260, 0.1},
	{"search, miss", "search", 985, 433, 50, 6, 229.5, 2, 3966, 0.1, 0, 250, 0.1},
	{"map, hit", "search-map", 135, 83, 17, 1.32, 47.4, 0, 1244, 0.1, 0, 249, 0.1},
	{"facets, hit", "facets", 75, 42, 0, 1, 22.4, 0, 1489, 0, 0, 0, 0},
	{"detail, hit", "detail", 72, 41, 0, 1, 22.6, 0, 2949, 0, 0, 0, 0},
	{"detail, miss", "detail", 690, 242, 0, 6.66, 90.5, 3.21, 3054, 0, 0, 0, 0},
	{"availability, hit", "availability", 77, 43, 0, 1, 22.7, 0, 812, 0, 0, 0, 0},
	{"page view", "telemetry-page-view", 230, 115, 200, 2, 53.5, 0, 532, 1, 0, 2260, 1},
	{"click", "telemetry-click", 232, 124, 200, 2, 55, 0, 532, 1, 0, 2089, 1},
	{"wishlist, add", "wishlist-add", 240, 110, 185, 2, 50.5, 0, 734, 1, 1, 2717, 1},
	{"session", "session", 180, 89, 37, 1, 50, 0, 3577, 0, 0, 0, 0},
	{"handoff", "handoff", 250, 114, 160, 2, 53.7, 0, 1081, 1, 2, 4229, 1},
	{"consume", "consume", 125, 0, 50, 0, 0, 0, 678, 0, 0, 552, 1},
}

// What is kept, in bytes, by the same measurement.
const (
	sessionHash    = 1392.0
	historyEntry   = 1736.0 / 11 // a search in a session's history; the guests of the measurement had made eleven
	viewedEntry    = 840.0 / 4   // a hotel among the recently viewed
	wishlistEntry  = 1096.0 / 4
	seenEntry      = 129.0  // a session in the sets by when it was last seen
	searchSession  = 1216.0 // for an hour
	groupOfClients = 424.0 + 120 + 456
	groupSessions  = 184.0 // for a day
	answerKept     = 776.0 // of a handoff, for a day
	listEntry      = 4624.0
	pageEntry      = 3220.0
	tagsOfEntry    = 4507.0

	outboxRow      = 2013.0 // with its indexes
	handoffRow     = 518.0
	idempotencyRow = 1007.0
	wishlistRow    = 362.0
	message        = 1000.0 + 345 // payload and attributes
	logRecord      = 539.0        // the mean of a journey's, in .local/log/functions.jsonl
)

// Measured elsewhere: docs/performance.md.
const sweptRows = 609_000.0 // of the outbox, in a second

// visit is what one guest does at a time: an assumption, to be replaced by what the funnel tells.
var visit = struct {
	newcomers              float64 // share that has no session yet
	searches, maps         float64
	facets, pages, days    float64 // asked of the edge
	views, clicks          float64
	wishes, sessions       float64
	handoffs, consumptions float64
	viewed                 float64 // different hotels
}{0.6, 4, 1, 1, 3, 2, 5, 3, 0.15, 0.5, 0.12, 0.1, 3}

// load is how much of it there is.
type load struct {
	name     string
	times    float64 // of the steady state
	events   float64 // per second: what SERVICE_OVERVIEW §8 sizes by
	hits     float64 // share of lists and pages that the cache has
	atEdge   float64 // share of the shared routes that the CDN answers
	campaign bool
}

const steadyEvents = 50.0 // per second, §8

var loads = []load{
	{"1×", 1, steadyEvents, 0.6, 0.75, false},
	{"10×", 10, steadyEvents * 10, 0.8, 0.9, true},
	{"50×", 50, steadyEvents * 50, 0.8, 0.9, false},
	{"1000×", 1000, steadyEvents * 1000, 0.8, 0.9, false},
}

// What is deployed, terraform/ with environments/production.tfvars; a test holds it against the plan.
var deployed = struct {
	redisGB                  float64
	postgresCPUs, postgresGB float64
	connections, allowed     int // that functions may open; of those Postgres allows
	sweepSeconds             float64
	sending, laneRows, lanes float64 // of a relay: requests at once; rows of a batch of a lane; lanes
}{4, 2, 7.5, 349, 400, 300, 64, 32, 33}

// Bounds that are no setting of ours. What the real Pub/Sub takes is assumed, not measured.
const (
	publish  = 0.020 // seconds of one request to Pub/Sub, which has one event as a rule
	turn     = 0.040 // seconds of a batch of a lane: two round trips of Postgres and what it publishes
	busy     = 0.6   // share of a core that we plan with, for functions, Redis and Postgres
	disk     = 10.0  // TB of Postgres that are still pleasant to restore
	held     = 0.020 // seconds that a request which writes holds a connection, with waiting for the disk
	dayLong  = 86_400.0
	monthSec = 730 * 3600.0
)
