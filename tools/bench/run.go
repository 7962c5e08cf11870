package main

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

// options are the arguments of the program.
type options struct {
	Round       time.Duration // time of load per server and round
	Rounds      int
	Connections int // concurrent clients
	// "relay", "mint", "costs" or "" for everything; of coldstart folders, separated by commas
	Only     string
	Root     string // of the repository
	Starts   int    // of each function, for coldstart
	Volatile bool   // Postgres does not wait for its disk, so that only CPU time counts
	Out      io.Writer
}

// row is one line of the report: the medians over the rounds.
type row struct {
	name                      string
	perSecond                 float64
	p50, p99                  time.Duration
	cpu                       time.Duration // per request
	roundTrips, upstreamCalls float64       // per request
	failed                    failures
	rounds                    int
}

// runBenchmarks runs the benchmarks of docs/performance.md and prints their results.
func runBenchmarks(ctx context.Context, o options) error {
	h, err := setUp(ctx, o.Volatile)
	if err != nil {
		return err
	}
	defer h.close()
	if o.Only == "relay" {
		return measureRelay(ctx, o, h.url, h.redisAddr)
	}
	if o.Only == "costs" {
		return measureCosts(ctx, o, h)
	}
	m := &meter{h.rdb, h.sandbox}
	searching, err := h.startFunction("Search")
	if err != nil {
		return err
	}
	cookie, key, body, err := h.warmCache(ctx, searching)
	if err != nil {
		return err
	}
	if o.Only == "mint" {
		minting, err := h.mintScenarios(cookie)
		if err != nil {
			return err
		}
		rows, err := m.runInterleaved(o, []scenario{minting})
		if err == nil {
			printTable(o, rows)
		}
		return err
	}
	path := filepath.Join(h.dir, "entry")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return err
	}
	plain, err := h.start(kindStatic, "BENCH_ENTRY="+path)
	if err != nil {
		return err
	}
	one, err := h.start(kindRedis, "BENCH_KEY="+key)
	if err != nil {
		return err
	}
	hit := searchRequest(cityGeo, "Accept-Encoding", "gzip", "Cookie", cookie)
	unzipped := searchRequest(cityGeo, "Cookie", cookie)
	var n atomic.Int64
	miss := func() []byte {
		i := n.Add(1) // a new point each time, within the city
		return searchRequest(fmt.Sprintf(`{"mode":"point","point":{"lat":%.3f,"lng":%.3f,"radiusKm":20}}`,
			34.4+float64(i%200)/1000, 69.0+float64(i/200)/1000), "Accept-Encoding", "gzip", "Cookie", cookie)
	}
	journey, err := h.journeyScenarios(ctx, searching, cookie)
	if err != nil {
		return err
	}
	contests := []scenario{
		{name: baselineBytes + " net/http, the same bytes", server: plain, next: repeat(hit)},
		{name: baselineRedisGet + " net/http + one Redis GET", server: one, next: repeat(hit)},
		{name: "search, warm hit, gzip", server: searching, next: repeat(hit)},
		{name: "search, warm hit, identity", server: searching, next: repeat(unzipped)},
		{name: "search, miss", server: searching, next: miss},
	}
	// Scenarios that write to Postgres run after those that read: the background work of Postgres
	// after writes would slow down the scenario that follows.
	var reading, writing []scenario
	for _, c := range journey {
		if c.writes {
			writing = append(writing, c)
		} else {
			reading = append(reading, c)
		}
	}
	read, err := m.runInterleaved(o, append(contests, reading...))
	if err != nil {
		return err
	}
	wrote, err := m.runInterleaved(o, writing)
	if err != nil {
		return err
	}
	rows := append(read, wrote...)
	cold, err := h.stampede(m, searching)
	if err != nil {
		return err
	}
	printReport(o, rows, cold)
	return measureRelay(ctx, o, h.url, h.redisAddr)
}

// runInterleaved runs o.Rounds rounds of all scenarios in turns and returns the medians of each
// scenario.
func (m *meter) runInterleaved(o options, contests []scenario) ([]row, error) {
	rounds := make([][]row, len(contests))
	for range o.Rounds {
		for i, c := range contests {
			r, err := m.runRound(o, c)
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

// scenario is a server and its requests. prepare runs before each round and is not measured.
type scenario struct {
	name    string
	server  *server
	next    func() []byte
	prepare func(round time.Duration) error
	writes  bool // to Postgres
}

func repeat(request []byte) func() []byte { return func() []byte { return request } }

// runRound loads one server and reads the meters before and after.
func (m *meter) runRound(o options, c scenario) (row, error) {
	if c.prepare != nil {
		if err := c.prepare(o.Round); err != nil {
			return row{}, err
		}
	}
	before, err := m.read(c.server)
	if err != nil {
		return row{}, err
	}
	l, err := runLoad(c.server.addr, o.Connections, o.Round, c.next)
	if err != nil {
		return row{}, err
	}
	after, err := m.read(c.server)
	if err != nil {
		return row{}, err
	}
	spent, requests := after.minus(before), float64(len(l.durations))
	return row{
		perSecond: l.perSecond(), p50: l.quantile(0.5), p99: l.quantile(0.99), failed: l.failed,
		cpu: time.Duration(float64(spent.cpu) / requests), roundTrips: float64(spent.roundTrips) / requests, upstreamCalls: float64(spent.upstreamCalls) / requests,
	}, nil
}

// stampedeResult is the cost of a stampede.
type stampedeResult struct {
	callers, processes   int
	load                 *load
	roundTrips, searches int64
	hedges               int64         // of the searches: calls that lost against their hedge
	cpu                  time.Duration // of all processes
}

const upstreamLatency = 200 * time.Millisecond

// stampede lets 1,000 callers send the same search to four processes while no cache has the answer.
func (h *environment) stampede(m *meter, first *server) (stampedeResult, error) {
	c := stampedeResult{callers: 1000, processes: 4}
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
	h.sandbox.Upstreams["search"].SetBehaviour(sandbox.Behaviour{LatencyMs: int(upstreamLatency.Milliseconds())})
	defer h.sandbox.Upstreams["search"].Reset()
	before, err := m.read(servers...)
	if err != nil {
		return c, err
	}
	asked := h.sandbox.Upstreams["search"].Counters()
	if c.load, err = stampede(addrs, c.callers, searchRequest(`{"mode":"city","city":"Herat"}`, "Accept-Encoding", "gzip")); err != nil {
		return c, err
	}
	after, err := m.read(servers...)
	spent := after.minus(before)
	c.cpu, c.roundTrips = spent.cpu, spent.roundTrips
	now := h.sandbox.Upstreams["search"].Counters()
	c.searches, c.hedges = now.Calls-asked.Calls, now.Abandoned-asked.Abandoned
	return c, err
}

// median returns the median of each column, and the failures of all rounds.
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
		perSecond:     pick(func(r row) float64 { return r.perSecond }),
		p50:           time.Duration(pick(func(r row) float64 { return float64(r.p50) })),
		p99:           time.Duration(pick(func(r row) float64 { return float64(r.p99) })),
		cpu:           time.Duration(pick(func(r row) float64 { return float64(r.cpu) })),
		roundTrips:    pick(func(r row) float64 { return r.roundTrips }),
		upstreamCalls: pick(func(r row) float64 { return r.upstreamCalls }),
	}
	for _, r := range rounds {
		m.failed = m.failed.merge(r.failed)
	}
	return m
}

// The names of the reference rows begin with these texts.
const (
	baselineBytes    = "(a)"
	baselineRedisGet = "(b)"
)

// printTable prints the rows. The columns of a reference that was not measured stay empty.
func printTable(o options, rows []row) {
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
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%d\t\n", r.name, r.perSecond, of(r, baselineBytes), of(r, baselineRedisGet),
			r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond), r.cpu.Round(time.Microsecond), r.roundTrips, r.upstreamCalls, r.failed.total())
	}
	t.Flush()
	for _, r := range rows {
		if r.failed != nil {
			fmt.Fprintf(o.Out, "not 2xx of %s: %s\n", r.name, r.failed)
		}
	}
}

func printReport(o options, rows []row, c stampedeResult) {
	printTable(o, rows)
	fmt.Fprintf(o.Out, "\ncold stampede: %d callers at once, %d processes, one key, upstream takes %s\n", c.callers, c.processes, upstreamLatency)
	hedges := ""
	if c.hedges > 0 { // a hedge starts after 800 ms of silence, here the silence of a busy machine
		hedges = fmt.Sprintf(" (%d of them hedges that lost)", c.hedges)
	}
	fmt.Fprintf(o.Out, "%.0f req/s, CPU %s per request, calls to search-aggregation %d%s, responses not 200 %d, ",
		c.load.perSecond(), (c.cpu / time.Duration(c.callers)).Round(time.Microsecond), c.searches, hedges, c.load.failed.total())
	p50, p99 := c.load.quantile(0.5), c.load.quantile(0.99)
	fmt.Fprintf(o.Out, "p50 %s, p99 %s, p99 over the upstream %s, Redis round trips %d\n", p50.Round(time.Millisecond),
		p99.Round(time.Millisecond), (p99 - upstreamLatency).Round(time.Millisecond), c.roundTrips)
}
