package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Guests of the measurement: enough that none is as fast as a robot, or empties a bucket.
const (
	costGuests  = 1000
	costRounds  = 4 // requests of each guest, of a kind
	costClients = 4 // at once
)

// costFlags are the defaults, but for handoffs: a guest of the measurement mints more in a minute than one may.
const costFlags = `{"limits":{"handoff":{"cookie":1000,"ip":1000,"fingerprint":1000000},
	"read":{"fingerprint":1000000},"telemetry":{"fingerprint":1000000}}}`

// kind is one way to ask, by many guests.
type kind struct {
	name     string
	function string                    // entry point
	rounds   int                       // requests of each guest; 0: costRounds
	request  func(guest, n int) []byte // the n-th of a guest
	learn    bool                      // whether answers say who the guest is
}

// cost is what one request of a kind cost, the mean over all of them.
type cost struct {
	name                    string
	requests, failed        int
	cpu, redisCPU, database time.Duration
	commands, trips         float64       // Redis
	scripts                 time.Duration // time in scripts
	calls                   float64       // of upstreams
	in, out                 int           // bytes on the wire
	outbox, rows            float64       // rows of the outbox, and of other tables
	wal                     int           // bytes
}

// costs measures what a request of each kind costs its process, Redis and Postgres, with limits and detector at work, and
// then what it has left there.
func costs(ctx context.Context, o Options, h *house) error {
	if err := os.WriteFile(filepath.Join(h.dir, "flags.json"), []byte(costFlags), 0o600); err != nil {
		return err
	}
	h.env = append(h.env, "TRUSTED_HOPS=1") // guests' addresses are in a header
	l := &tally{house: h, meters: &meter{h.rdb, h.sands}, cookies: make([]string, costGuests), servers: map[string]*server{}}
	var err error
	if l.postmaster, err = l.parent(ctx); err != nil {
		return err
	}
	var all []cost
	for _, k := range l.kinds() {
		c, err := l.measure(ctx, k)
		if err != nil {
			return fmt.Errorf("bench: %s: %w", k.name, err)
		}
		all = append(all, c)
	}
	tell(o, all)
	return l.left(ctx, o)
}

// tally has what the kinds share.
type tally struct {
	*house
	meters     *meter
	postmaster int // process id
	mu         sync.Mutex
	cookies    []string // by guest
	servers    map[string]*server
}

// as is a request of one guest: with an address and a cookie of its own.
func (l *tally) as(guest int, method, path, body string, more ...string) []byte {
	l.mu.Lock()
	cookie := l.cookies[guest]
	l.mu.Unlock()
	more = append(more, "X-Forwarded-For", fmt.Sprintf("100.64.%d.%d", guest/250, guest%250+1), "Accept-Encoding", "gzip",
		"X-Client-Screen", "1080x2340", "X-Client-Timezone", "Asia/Kabul")
	if cookie != "" && !strings.HasPrefix(path, web.Base+"/hotels") && !strings.HasPrefix(path, web.Base+"/facets") {
		more = append(more, "Cookie", cookie)
	}
	return request(method, path, body, more...)
}

func (l *tally) kinds() []kind {
	hotels := l.data.Properties
	day := func(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }
	search := func(guest int, geo string) []byte {
		return l.as(guest, "POST", web.Base+"/search", `{"geo":`+geo+`,`+stayed()+`}`)
	}
	page := func(guest, n int) string {
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		return fmt.Sprintf(`"viewedAt":%q,"eventId":%q`, at, id.New(id.Event, time.Now()))
	}
	var apart atomic.Int64
	return []kind{
		{name: "search, first visit", function: "Search", rounds: 1, learn: true, request: func(g, _ int) []byte { return search(g, city) }},
		{name: "search, hit", function: "Search", request: func(g, _ int) []byte { return search(g, city) }},
		{name: "search, miss", function: "Search", rounds: 2, request: func(g, _ int) []byte {
			i := apart.Add(1)
			return search(g, fmt.Sprintf(`{"mode":"point","point":{"lat":%.3f,"lng":%.3f,"radiusKm":20}}`, 34.4+float64(i%200)/1000, 69.0+float64(i/200)/1000))
		}},
		{name: "map, hit", function: "SearchMap", request: func(g, _ int) []byte {
			return l.as(g, "POST", web.Base+"/search/map", `{"geo":{"mode":"bounding-box","boundingBox":{"swLat":34.3,"swLng":68.9,"neLat":34.8,"neLng":69.5}},"zoom":11,`+stayed()+`}`)
		}},
		{name: "facets, hit", function: "Facets", request: func(g, _ int) []byte {
			return l.as(g, "GET", web.Base+"/facets?country=AF&locale=ps-AF&currency=AFN", "")
		}},
		{name: "detail, hit", function: "Detail", request: func(g, _ int) []byte {
			return l.as(g, "GET", web.Base+"/hotels/"+hotels[0].ID+"?locale=ps-AF&currency=AFN", "")
		}},
		{name: "detail, miss", function: "Detail", rounds: 1, request: func(g, _ int) []byte {
			locale := []string{"ps-AF", "fa-AF", "en", "ar"}[g/len(hotels)%4]
			return l.as(g, "GET", fmt.Sprintf("%s/hotels/%s?locale=%s&currency=USD", web.Base, hotels[g%len(hotels)].ID, locale), "")
		}},
		{name: "availability, hit", function: "Availability", request: func(g, _ int) []byte {
			return l.as(g, "GET", fmt.Sprintf("%s/hotels/%s/availability?from=%s&to=%s&locale=ps-AF&currency=AFN", web.Base, hotels[0].ID, day(1), day(31)), "")
		}},
		{name: "page view", function: "TelemetryPageView", request: func(g, n int) []byte {
			return l.as(g, "POST", web.Base+"/telemetry/page-view", fmt.Sprintf(`{"path":"/hotels/%s",%s}`, hotels[(g+n)%len(hotels)].ID, page(g, n)))
		}},
		{name: "click", function: "TelemetryClick", request: func(g, n int) []byte {
			hotel := hotels[(g+n)%len(hotels)]
			return l.as(g, "POST", web.Base+"/telemetry/click", fmt.Sprintf(`{"kind":"listing-card","propertyId":%q,"tenantId":%q,"position":%d}`, hotel.ID, hotel.Tenant.ID, n+1))
		}},
		{name: "wishlist, add", function: "WishlistAdd", request: func(g, n int) []byte {
			hotel := hotels[(g+n*7)%len(hotels)]
			return l.as(g, "POST", web.Base+"/wishlist", fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"source":"detail"}`, hotel.ID, hotel.Tenant.ID))
		}},
		{name: "session", function: "Session", request: func(g, _ int) []byte { return l.as(g, "GET", web.Base+"/session", "") }},
		{name: "handoff", function: "Handoff", rounds: 2, request: func(g, _ int) []byte {
			return l.as(g, "POST", web.Base+"/handoff", fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,%s}`, hotels[0].Tenant.ID, hotels[0].ID, stayed()),
				"Idempotency-Key", id.New(id.Request, time.Now()))
		}},
		{name: "consume", function: "Consume", rounds: 2},
	}
}

// measure asks in the guests' names and reads the meters around it. What is asked is made before.
func (l *tally) measure(ctx context.Context, k kind) (cost, error) {
	s, err := l.serving(k.function)
	if err != nil {
		return cost{}, err
	}
	rounds := cmp.Or(k.rounds, costRounds)
	var requests [][]byte
	if k.request == nil {
		if requests, err = l.handoffs(ctx, rounds*costGuests+1); err != nil {
			return cost{}, err
		}
	} else {
		for n := range rounds {
			for guest := range costGuests {
				requests = append(requests, k.request(guest, n))
			}
		}
	}
	if !k.learn { // connections, caches and statements are there already, as in an instance that has been up for a while
		if err := warmUp(s, requests[len(requests)-1]); err != nil {
			return cost{}, err
		}
		requests = requests[:len(requests)-1]
	}
	before, err := l.look(ctx, s)
	if err != nil {
		return cost{}, err
	}
	asked, err := l.ask(s.addr, requests, k.learn)
	if err != nil {
		return cost{}, err
	}
	after, err := l.look(ctx, s)
	if err != nil {
		return cost{}, err
	}
	return after.cost(before, k.name, asked), nil
}

func (l *tally) serving(name string) (*server, error) {
	if l.servers[name] == nil {
		s, err := l.startFunction(name)
		if err != nil {
			return nil, err
		}
		l.servers[name] = s
	}
	return l.servers[name], nil
}

// warmUp asks once and takes any answer of success.
func warmUp(s *server, request []byte) error {
	_, _, err := s.once(request)
	return err
}

// asked is what the clients counted.
type asked struct{ requests, failed, in, out int }

// ask sends each request once, over a few connections.
func (l *tally) ask(addr string, requests [][]byte, learn bool) (asked, error) {
	var next atomic.Int64
	var sum asked
	errs := make([]error, costClients)
	var all sync.WaitGroup
	for i := range costClients {
		all.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer conn.Close()
			wire := &counted{Conn: conn}
			in := bufio.NewReader(wire)
			mine := asked{}
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= len(requests) {
					break
				}
				mine.requests++
				mine.in += len(requests[n])
				errs[i] = l.one(wire, in, requests[n], n, learn, &mine)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			sum.requests += mine.requests
			sum.failed += mine.failed
			sum.in += mine.in
			sum.out += wire.read
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (l *tally) one(wire net.Conn, in *bufio.Reader, request []byte, guest int, learn bool, mine *asked) error {
	if _, err := wire.Write(request); err != nil {
		return err
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		mine.failed++
		if said, _ := httputil.DumpResponse(res, true); mine.failed == 1 {
			fmt.Fprintf(os.Stderr, "bench: %s\n%s\n", bytes.SplitN(request, []byte("\r"), 2)[0], said)
		}
	}
	if _, err := new(bytes.Buffer).ReadFrom(res.Body); err != nil {
		return err
	}
	if learn {
		for _, c := range res.Cookies() {
			l.mu.Lock()
			l.cookies[guest] = c.Name + "=" + c.Value
			l.mu.Unlock()
		}
	}
	return nil
}

// counted counts what is read.
type counted struct {
	net.Conn
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read += n
	return n, err
}

func tell(o Options, all []cost) {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(o.Out, "means of a request, of %d guests with a cookie and an address each; CPU in µs\n\n", costGuests)
	fmt.Fprintln(w, "\trequests\tnot 2xx\tCPU\tof Redis\tin scripts\tof Postgres\ttrips\tcommands\tupstream\tbytes in\tbytes out\toutbox\tother rows\tWAL\t")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%d\t%d\t%.2f\t%.2f\t%d\t\n", c.name, c.requests, c.failed,
			c.cpu.Microseconds(), c.redisCPU.Microseconds(), c.scripts.Microseconds(), c.database.Microseconds(),
			c.trips, c.commands, c.calls, c.in, c.out, c.outbox, c.rows, c.wal)
	}
	w.Flush()
}
