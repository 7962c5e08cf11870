package scale

// need is what a load takes of everything.
type need struct {
	visits, requests, edge     float64            // per second; edge: asked of the edge, in all
	rate                       map[string]float64 // requests per second, by function
	cpu                        map[string]float64 // cores, by function
	cores, redisCores, dbCores float64
	commands, trips            float64 // of Redis, per second
	upstream, events, writes   float64 // per second
	bytesOut, edgeOut          float64 // per second: from functions; to guests
	wal                        float64 // bytes per second
	sessions, sessionBytes     float64 // that live; bytes of each
	redis, redisOther          float64 // bytes; of which no sessions
	disk, outboxDisk           float64 // bytes of Postgres
	sweep                      float64 // seconds of a day's
	relay                      float64 // share of what one relay sends
	connections                float64 // busy at once
	searchMisses               float64 // per second
}

// of works out a load.
func (l load) need() need {
	perVisit := visit.newcomers*2 + 0.1*(visit.searches-visit.newcomers+visit.maps) + visit.newcomers*0.1 +
		visit.views + visit.clicks + visit.wishes + visit.handoffs // events; each session begins and, a month later, ends
	n := need{visits: l.events / perVisit, events: l.events, rate: map[string]float64{}, cpu: map[string]float64{}}
	v, through := n.visits, 1-l.atEdge
	later := visit.searches - visit.newcomers
	asked := map[string]float64{
		"search, first visit": visit.newcomers,
		"search, hit":         later * l.hits, "search, miss": later * (1 - l.hits),
		"map, hit":    visit.maps, // a miss of the map costs like one of the list; maps share few boxes
		"facets, hit": visit.facets * through,
		"detail, hit": visit.pages * through * l.hits, "detail, miss": visit.pages * through * (1 - l.hits),
		"availability, hit": visit.days * through,
		"page view":         visit.views, "click": visit.clicks, "wishlist, add": visit.wishes,
		"session": visit.sessions, "handoff": visit.handoffs, "consume": visit.consumptions,
	}
	for _, k := range kinds {
		rate := asked[k.name] * v
		n.requests += rate
		n.rate[k.function] += rate
		n.cpu[k.function] += rate * k.cpu / 1e6
		n.cores += rate * k.cpu / 1e6
		n.redisCores += rate * k.redis / 1e6
		n.dbCores += rate * k.postgres / 1e6
		n.commands += rate * k.commands
		n.trips += rate * k.trips
		n.upstream += rate * k.upstream
		n.bytesOut += rate * k.out
		n.wal += rate * k.wal
		n.writes += rate * k.writes
	}
	shared := l.atEdge / through // what the edge answers for each one that it lets through
	n.edge = n.requests - n.rate["consume"]
	n.edgeOut = n.bytesOut
	for _, k := range kinds {
		if k.function == "facets" || k.function == "detail" || k.function == "availability" {
			n.edge += asked[k.name] * v * shared
			n.edgeOut += asked[k.name] * v * shared * k.out
		}
	}
	n.memory(l)
	n.database()
	n.relay = n.events / (deployed.sending / publish)
	n.connections = n.writes * held
	return n
}

// memory is what Redis holds: everything lives as long as it is told to, and no longer.
func (n *need) memory(l load) {
	v := n.visits
	n.sessions = v * visit.newcomers * 30 * dayLong
	n.sessionBytes = sessionHash + historyEntry*(visit.searches+visit.maps) + viewedEntry*visit.viewed + wishlistEntry*visit.wishes + seenEntry
	listLife, pageLife := 660.0, 900.0 // fresh, and ten minutes more
	if l.campaign {
		listLife = 900
	}
	misses := (visit.searches - visit.newcomers) * (1 - l.hits) * v
	n.searchMisses = misses
	pages := visit.pages * (1 - l.atEdge) * (1 - l.hits) * v
	n.redisOther = v*(visit.searches+visit.maps)*3600*searchSession + v*visit.handoffs*dayLong*answerKept +
		v*dayLong*groupSessions*visit.newcomers + v*60*groupOfClients +
		misses*listLife*(listEntry+tagsOfEntry) + pages*pageLife*(pageEntry+tagsOfEntry)
	n.redis = n.sessions*n.sessionBytes + n.redisOther
}

// database is what Postgres keeps: outbox rows for 30 days, handoffs and their answers for one, wishes as long as sessions.
func (n *need) database() {
	v := n.visits
	n.outboxDisk = n.events * 30 * dayLong * outboxRow
	n.disk = n.outboxDisk + v*visit.handoffs*dayLong*(handoffRow+idempotencyRow) + v*visit.wishes*30*dayLong*wishlistRow
	n.sweep = n.events * dayLong / sweptRows
}

// limit is something that ends: how much there is of it as deployed, and how much the steady state takes.
type limit struct {
	name, unit   string
	there, taken float64
	metric       string // by which one sees it coming
	then         string // what takes over
}

// full is at how many times the steady state it is used up.
func (l limit) full() float64 { return l.there / l.taken }

func limits() []limit {
	n := loads[0].need()
	all := []limit{
		{"Memory of Redis", "GB", deployed.redisGB * 0.8, n.redis / 1e9, "alerts `redis-memory`, `redis-evicts`", "`redis_memory_gb`, to 300; then Redis Cluster"},
		{"Disk of Postgres", "TB", disk, n.disk / 1e12, "alert `postgres-disk`", "days of outbox as partitions, kept for 3 days"},
		{"Processors of Postgres", "cores", deployed.postgresCPUs * busy, n.dbCores, "alert `postgres-busy`", "a larger tier, to 96; then AlloyDB; then regional stacks or Spanner"},
		{"One core of Redis", "cores", busy, n.redisCores, "`redis.googleapis.com/stats/cpu_utilization_main_thread`; no alert", "Redis Cluster"},
		{"The sweep of the outbox, a run a day", "s", deployed.sweepSeconds, n.sweep, "`more: true` in what `SweepOutbox` answers", "`cadence = { sweep-outbox = \"17 * * * *\" }`; then partitions"},
		{"One relay", "events/s", deployed.sending / publish, n.events, "age of the oldest row: [outbox](runbooks/outbox.md)", "a second tick: relays share the lanes"},
		{"All lanes", "events/s", deployed.lanes * deployed.laneRows / turn, n.events, "age of the oldest row: [outbox](runbooks/outbox.md)", "lanes by two characters: 1,024"},
		{"Connections of Postgres", "busy", float64(deployed.connections), n.connections, "alert `postgres-connections`", "a pooler in transaction mode; fewer, larger instances"},
	}
	for function, cores := range n.cpu {
		if most, ok := mostInstances[function]; ok {
			all = append(all, limit{"Instances of `" + function + "`", "instances", float64(most), cores / busy, "alert `instances`", "`sizes`"})
		}
	}
	return all
}

// mostInstances are those of the functions in the mix, as deployed.
var mostInstances = map[string]int{
	"search": 10, "search-map": 4, "facets": 3, "detail": 10, "availability": 4, "handoff": 4, "telemetry-page-view": 5,
	"telemetry-click": 3, "wishlist-add": 3, "session": 3, "consume": 2,
}
