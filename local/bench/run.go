package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
)

// Options are how long and how much.
type Options struct {
	Round       time.Duration // of one server at a time
	Rounds      int
	Connections int
	Only        string // "relay": the way of events out; "mint": a mint; "costs": of one request of each kind; else everything
	Root        string // of the repository, for ColdStart, whose Only is folders, comma between them
	Starts      int    // of each function, for ColdStart
	Volatile    bool   // Postgres does not wait for its disk, so that only the processor counts
	Out         io.Writer
}

// row is one line of the report: medians over the rounds.
type row struct {
	name         string
	perSecond    float64
	p50, p99     time.Duration
	cpu          time.Duration // per request
	trips, calls float64       // per request
	failed       refusals
	rounds       int
}

// Run measures and prints.
func Run(ctx context.Context, o Options) error {
	h, err := open(ctx, o.Volatile)
	if err != nil {
		return err
	}
	defer h.close()
	if o.Only == "relay" {
		return relays(ctx, o, h.url, h.redis)
	}
	if o.Only == "costs" {
		return costs(ctx, o, h)
	}
	m := &meter{h.rdb, h.sands}
	searching, err := h.startFunction("Search")
	if err != nil {
		return err
	}
	cookie, key, body, err := h.warm(ctx, searching)
	if err != nil {
		return err
	}
	if o.Only == "mint" {
		minting, err := h.minting(cookie)
		if err != nil {
			return err
		}
		rows, err := m.inTurns(o, []contest{minting})
		if err == nil {
			table(o, rows)
		}
		return err
	}
	path := filepath.Join(h.dir, "entry")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return err
	}
	plain, err := h.start(bare, "BENCH_ENTRY="+path)
	if err != nil {
		return err
	}
	one, err := h.start(redis, "BENCH_KEY="+key)
	if err != nil {
		return err
	}
	hit := searchFor(city, "Accept-Encoding", "gzip", "Cookie", cookie)
	unzipped := searchFor(city, "Cookie", cookie)
	var n atomic.Int64
	miss := func() []byte {
		i := n.Add(1) // a point of its own each time, within the city
		return searchFor(fmt.Sprintf(`{"mode":"point","point":{"lat":%.3f,"lng":%.3f,"radiusKm":20}}`,
			34.4+float64(i%200)/1000, 69.0+float64(i/200)/1000), "Accept-Encoding", "gzip", "Cookie", cookie)
	}
	journey, err := h.journey(ctx, searching, cookie)
	if err != nil {
		return err
	}
	contests := []contest{
		{name: bareBytes + " net/http, the same bytes", server: plain, next: always(hit)},
		{name: bareGet + " net/http + one Redis GET", server: one, next: always(hit)},
		{name: "search, warm hit, gzip", server: searching, next: always(hit)},
		{name: "search, warm hit, identity", server: searching, next: always(unzipped)},
		{name: "search, miss", server: searching, next: miss},
	}
	// What writes to Postgres comes after all that reads: its background work would be counted against whoever follows.
	var reading, writing []contest
	for _, c := range journey {
		if c.writes {
			writing = append(writing, c)
		} else {
			reading = append(reading, c)
		}
	}
	read, err := m.inTurns(o, append(contests, reading...))
	if err != nil {
		return err
	}
	wrote, err := m.inTurns(o, writing)
	if err != nil {
		return err
	}
	rows := append(read, wrote...)
	cold, err := h.stampede(m, searching)
	if err != nil {
		return err
	}
	report(o, rows, cold)
	return relays(ctx, o, h.url, h.redis)
}

// inTurns loads each contest's server for a round, all of them in turns, and returns the medians.
func (m *meter) inTurns(o Options, contests []contest) ([]row, error) {
	rounds := make([][]row, len(contests))
	for range o.Rounds {
		for i, c := range contests {
			r, err := m.round(o, c)
			if err != nil {
				return nil, fmt.Errorf("bench: %s: %w", c.name, err)
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	rows := make([]row, len(contests))
	for i, c := range contests {
		rows[i] = median(rounds[i])
		rows[i].name = c.name
	}
	return rows, nil
}

// contest is a server and what it is asked. What prepare does for a round is not measured.
type contest struct {
	name    string
	server  *server
	next    func() []byte
	prepare func(round time.Duration) error
	writes  bool // to Postgres
}

func always(request []byte) func() []byte { return func() []byte { return request } }

// round loads one server and reads the meters around it.
func (m *meter) round(o Options, c contest) (row, error) {
	if c.prepare != nil {
		if err := c.prepare(o.Round); err != nil {
			return row{}, err
		}
	}
	before, err := m.read(c.server)
	if err != nil {
		return row{}, err
	}
	l, err := hammer(c.server.addr, o.Connections, o.Round, c.next)
	if err != nil {
		return row{}, err
	}
	after, err := m.read(c.server)
	if err != nil {
		return row{}, err
	}
	spent, requests := after.minus(before), float64(len(l.took))
	return row{
		perSecond: l.perSecond(), p50: l.quantile(0.5), p99: l.quantile(0.99), failed: l.failed,
		cpu: time.Duration(float64(spent.cpu) / requests), trips: float64(spent.trips) / requests, calls: float64(spent.upstream) / requests,
	}, nil
}

// cold is what a stampede cost.
type cold struct {
	callers, processes int
	l                  *load
	trips, searches    int64
	hedges             int64         // of the searches: calls that were left for the one beside them
	cpu                time.Duration // of all processes
}

const upstreamTakes = 200 * time.Millisecond

// stampede lets 1,000 callers ask four processes for one key that nobody has.
func (h *house) stampede(m *meter, first *server) (cold, error) {
	c := cold{callers: 1000, processes: 4}
	servers := []*server{first}
	for len(servers) < c.processes {
		s, err := h.startFunction("Search")
		if err != nil {
			return c, err
		}
		servers = append(servers, s)
	}
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.addr
	}
	h.sands.Upstreams["search"].Behave(sandbox.Behaviour{LatencyMs: int(upstreamTakes.Milliseconds())})
	defer h.sands.Upstreams["search"].Reset()
	before, err := m.read(servers...)
	if err != nil {
		return c, err
	}
	asked := h.sands.Upstreams["search"].Counters()
	if c.l, err = stampede(addrs, c.callers, searchFor(`{"mode":"city","city":"Herat"}`, "Accept-Encoding", "gzip")); err != nil {
		return c, err
	}
	after, err := m.read(servers...)
	spent := after.minus(before)
	c.cpu, c.trips = spent.cpu, spent.trips
	now := h.sands.Upstreams["search"].Counters()
	c.searches, c.hedges = now.Calls-asked.Calls, now.Abandoned-asked.Abandoned
	return c, err
}

func median(rounds []row) row {
	pick := func(of func(row) float64) float64 {
		values := make([]float64, len(rounds))
		for i, r := range rounds {
			values[i] = of(r)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	m := row{
		perSecond: pick(func(r row) float64 { return r.perSecond }),
		p50:       time.Duration(pick(func(r row) float64 { return float64(r.p50) })),
		p99:       time.Duration(pick(func(r row) float64 { return float64(r.p99) })),
		cpu:       time.Duration(pick(func(r row) float64 { return float64(r.cpu) })),
		trips:     pick(func(r row) float64 { return r.trips }),
		calls:     pick(func(r row) float64 { return r.calls }),
	}
	for _, r := range rounds {
		m.failed = m.failed.add(r.failed)
	}
	return m
}

// The rows that the others are compared with are named so that they begin with these.
const (
	bareBytes = "(a)"
	bareGet   = "(b)"
)

// table prints the rows; where a reference was not measured, nothing is compared with it.
func table(o Options, rows []row) {
	of := func(r row, reference string) string {
		i := slices.IndexFunc(rows, func(r row) bool { return strings.HasPrefix(r.name, reference) })
		if i < 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", r.perSecond/rows[i].perSecond)
	}
	fmt.Fprintf(o.Out, "medians of %d rounds of %s each, in turns, %d connections\n\n", o.Rounds, o.Round, o.Connections)
	t := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\treq/s\tof (a)\tof (b)\tp50\tp99\tCPU/req\tRedis trips/req\tupstream calls/req\tnot 2xx\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%d\t\n", r.name, r.perSecond, of(r, bareBytes), of(r, bareGet),
			r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond), r.cpu.Round(time.Microsecond), r.trips, r.calls, r.failed.all())
	}
	t.Flush()
	for _, r := range rows {
		if r.failed != nil {
			fmt.Fprintf(o.Out, "not 2xx of %s: %s\n", r.name, r.failed)
		}
	}
}

func report(o Options, rows []row, c cold) {
	table(o, rows)
	fmt.Fprintf(o.Out, "\ncold stampede: %d callers at once, %d processes, one key, upstream takes %s\n", c.callers, c.processes, upstreamTakes)
	hedges := ""
	if c.hedges > 0 { // the machine was silent for 800 ms, not the upstream
		hedges = fmt.Sprintf(" (%d of them hedges that lost)", c.hedges)
	}
	fmt.Fprintf(o.Out, "%.0f req/s, CPU %s per request, calls to search-aggregation %d%s, answers not 200 %d, ",
		c.l.perSecond(), (c.cpu / time.Duration(c.callers)).Round(time.Microsecond), c.searches, hedges, c.l.failed.all())
	p50, p99 := c.l.quantile(0.5), c.l.quantile(0.99)
	fmt.Fprintf(o.Out, "p50 %s, p99 %s, p99 over the upstream %s, Redis round trips %d\n", p50.Round(time.Millisecond),
		p99.Round(time.Millisecond), (p99 - upstreamTakes).Round(time.Millisecond), c.trips)
}
