package main

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

// The guests of the measurement: so many that no guest sends requests at the rate of a bot or
// exceeds a rate limit.
const (
	costGuests  = 1000
	costRounds  = 4 // requests per guest and kind
	costClients = 4 // concurrent
)

// costFlags are the default flags, except that the guests share a fingerprint and mint more
// handoffs in a minute than the default limits allow.
const costFlags = `{"limits":{"handoff":{"cookie":1000,"ip":1000,"fingerprint":1000000},
	"read":{"fingerprint":1000000},"telemetry":{"fingerprint":1000000}}}`

// requestKind is a kind of request that every guest sends.
type requestKind struct {
	name        string
	function    string                    // entry point
	rounds      int                       // requests per guest; 0 means costRounds
	request     func(guest, n int) []byte // the n-th request of a guest; nil means Consume
	keepCookies bool                      // the responses set the guests' cookies
}

// cost is the mean cost of a request of one kind.
type cost struct {
	name                       string
	requests, failed           int
	cpu, redisCPU, postgresCPU time.Duration
	commands, roundTrips       float64       // of Redis
	scriptTime                 time.Duration // of Redis, in Lua scripts
	upstreamCalls              float64
	bytesIn, bytesOut          int     // bytes on the wire
	outbox, otherRows          float64 // rows written
	wal                        int     // bytes of write-ahead log
}

// measureCosts measures the cost of a request of each kind in its process, in Redis and in
// Postgres, with rate limits and bot detection on. Then it prints the data that the requests left
// in the stores.
func measureCosts(ctx context.Context, o options, h *environment) error {
	if err := os.WriteFile(filepath.Join(h.dir, "flags.json"), []byte(costFlags), 0o600); err != nil {
		return err
	}
	h.env = append(h.env, "TRUSTED_HOPS=1") // the client address comes from X-Forwarded-For
	l := &costRun{environment: h, meter: &meter{h.rdb, h.sandbox}, cookies: make([]string, costGuests), servers: map[string]*server{}}
	var err error
	if l.postmaster, err = l.readPostmasterPID(ctx); err != nil {
		return err
	}
	var all []cost
	for _, k := range l.requestKinds() {
		c, err := l.measure(ctx, k)
		if err != nil {
			return fmt.Errorf("bench: %s: %w", k.name, err)
		}
		all = append(all, c)
	}
	printCosts(o, all)
	return l.printRemaining(ctx, o)
}

// costRun is the state that all kinds of request share.
type costRun struct {
	*environment
	meter      *meter
	postmaster int // process id
	mu         sync.Mutex
	cookies    []string // by guest
	servers    map[string]*server
}

// guestRequest returns a request with the guest's own address and cookie. Requests for shared
// responses have no cookie.
func (l *costRun) guestRequest(guest int, method, path, body string, more ...string) []byte {
	l.mu.Lock()
	cookie := l.cookies[guest]
	l.mu.Unlock()
	more = append(more, "X-Forwarded-For", fmt.Sprintf("100.64.%d.%d", guest/250, guest%250+1), "Accept-Encoding", "gzip",
		"X-Client-Screen", "1080x2340", "X-Client-Timezone", "Asia/Kabul")
	if cookie != "" && !strings.HasPrefix(path, web.BasePath+"/hotels") && !strings.HasPrefix(path, web.BasePath+"/facets") {
		more = append(more, "Cookie", cookie)
	}
	return request(method, path, body, more...)
}

func (l *costRun) requestKinds() []requestKind {
	hotels := l.data.Properties
	day := func(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }
	search := func(guest int, geo string) []byte {
		return l.guestRequest(guest, "POST", web.BasePath+"/search", `{"geo":`+geo+`,`+stayFields()+`}`)
	}
	page := func(guest, n int) string {
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		return fmt.Sprintf(`"viewedAt":%q,"eventId":%q`, at, id.New(id.Event, time.Now()))
	}
	var apart atomic.Int64
	return []requestKind{
		{name: "search, first visit", function: "Search", rounds: 1, keepCookies: true, request: func(g, _ int) []byte { return search(g, cityGeo) }},
		{name: "search, hit", function: "Search", request: func(g, _ int) []byte { return search(g, cityGeo) }},
		{name: "search, miss", function: "Search", rounds: 2, request: func(g, _ int) []byte {
			i := apart.Add(1)
			return search(g, fmt.Sprintf(`{"mode":"point","point":{"lat":%.3f,"lng":%.3f,"radiusKm":20}}`, 34.4+float64(i%200)/1000, 69.0+float64(i/200)/1000))
		}},
		{name: "map, hit", function: "SearchMap", request: func(g, _ int) []byte {
			return l.guestRequest(g, "POST", web.BasePath+"/search/map", `{"geo":{"mode":"bounding-box","boundingBox":{"swLat":34.3,"swLng":68.9,"neLat":34.8,"neLng":69.5}},"zoom":11,`+stayFields()+`}`)
		}},
		{name: "facets, hit", function: "Facets", request: func(g, _ int) []byte {
			return l.guestRequest(g, "GET", web.BasePath+"/facets?country=AF&locale=ps-AF&currency=AFN", "")
		}},
		{name: "detail, hit", function: "Detail", request: func(g, _ int) []byte {
			return l.guestRequest(g, "GET", web.BasePath+"/hotels/"+hotels[0].ID+"?locale=ps-AF&currency=AFN", "")
		}},
		{name: "detail, miss", function: "Detail", rounds: 1, request: func(g, _ int) []byte {
			locale := []string{"ps-AF", "fa-AF", "en", "ar"}[g/len(hotels)%4]
			return l.guestRequest(g, "GET", fmt.Sprintf("%s/hotels/%s?locale=%s&currency=USD", web.BasePath, hotels[g%len(hotels)].ID, locale), "")
		}},
		{name: "availability, hit", function: "Availability", request: func(g, _ int) []byte {
			return l.guestRequest(g, "GET", fmt.Sprintf("%s/hotels/%s/availability?from=%s&to=%s&locale=ps-AF&currency=AFN", web.BasePath, hotels[0].ID, day(1), day(31)), "")
		}},
		{name: "page view", function: "TelemetryPageView", request: func(g, n int) []byte {
			return l.guestRequest(g, "POST", web.BasePath+"/telemetry/page-view", fmt.Sprintf(`{"path":"/hotels/%s",%s}`, hotels[(g+n)%len(hotels)].ID, page(g, n)))
		}},
		{name: "click", function: "TelemetryClick", request: func(g, n int) []byte {
			hotel := hotels[(g+n)%len(hotels)]
			return l.guestRequest(g, "POST", web.BasePath+"/telemetry/click", fmt.Sprintf(`{"kind":"listing-card","propertyId":%q,"tenantId":%q,"position":%d}`, hotel.ID, hotel.Tenant.ID, n+1))
		}},
		{name: "wishlist, add", function: "WishlistAdd", request: func(g, n int) []byte {
			hotel := hotels[(g+n*7)%len(hotels)]
			return l.guestRequest(g, "POST", web.BasePath+"/wishlist", fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"source":"detail"}`, hotel.ID, hotel.Tenant.ID))
		}},
		{name: "session", function: "Session", request: func(g, _ int) []byte { return l.guestRequest(g, "GET", web.BasePath+"/session", "") }},
		{name: "handoff", function: "Handoff", rounds: 2, request: func(g, _ int) []byte {
			return l.guestRequest(g, "POST", web.BasePath+"/handoff", fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,%s}`, hotels[0].Tenant.ID, hotels[0].ID, stayFields()),
				"Idempotency-Key", id.New(id.Request, time.Now()))
		}},
		{name: "consume", function: "Consume", rounds: 2},
	}
}

// measure sends the requests of all guests and reads the meters before and after. It creates the
// requests before the measurement.
func (l *costRun) measure(ctx context.Context, k requestKind) (cost, error) {
	s, err := l.serverFor(k.function)
	if err != nil {
		return cost{}, err
	}
	rounds := cmp.Or(k.rounds, costRounds)
	var requests [][]byte
	if k.request == nil {
		if requests, err = l.consumeRequests(ctx, rounds*costGuests+1); err != nil {
			return cost{}, err
		}
	} else {
		for n := range rounds {
			for guest := range costGuests {
				requests = append(requests, k.request(guest, n))
			}
		}
	}
	// opens connections, fills caches and prepares statements, as in an instance that is not new
	if !k.keepCookies {
		if err := warmUp(s, requests[len(requests)-1]); err != nil {
			return cost{}, err
		}
		requests = requests[:len(requests)-1]
	}
	before, err := l.readAll(ctx, s)
	if err != nil {
		return cost{}, err
	}
	asked, err := l.sendAll(s.addr, requests, k.keepCookies)
	if err != nil {
		return cost{}, err
	}
	after, err := l.readAll(ctx, s)
	if err != nil {
		return cost{}, err
	}
	return after.cost(before, k.name, asked), nil
}

func (l *costRun) serverFor(name string) (*server, error) {
	if l.servers[name] == nil {
		s, err := l.startFunction(name)
		if err != nil {
			return nil, err
		}
		l.servers[name] = s
	}
	return l.servers[name], nil
}

// warmUp sends one request and ignores a successful response.
func warmUp(s *server, request []byte) error {
	_, _, err := s.do(request)
	return err
}

// requestTotals are the counts of the clients. bytesIn are sent to the server, bytesOut received
// from it.
type requestTotals struct{ requests, failed, bytesIn, bytesOut int }

// sendAll sends each request once, over costClients connections.
func (l *costRun) sendAll(addr string, requests [][]byte, learn bool) (requestTotals, error) {
	var next atomic.Int64
	var sum requestTotals
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
			wire := &countingConn{Conn: conn}
			in := bufio.NewReader(wire)
			mine := requestTotals{}
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= len(requests) {
					break
				}
				mine.requests++
				mine.bytesIn += len(requests[n])
				errs[i] = l.send(wire, in, requests[n], n, learn, &mine)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			sum.requests += mine.requests
			sum.failed += mine.failed
			sum.bytesIn += mine.bytesIn
			sum.bytesOut += wire.bytesRead
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

func (l *costRun) send(wire net.Conn, in *bufio.Reader, request []byte, guest int, learn bool, mine *requestTotals) error {
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

// countingConn counts the bytes it reads.
type countingConn struct {
	net.Conn
	bytesRead int
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytesRead += n
	return n, err
}

func printCosts(o options, all []cost) {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(o.Out, "mean cost of a request; %d guests with a cookie and an address each; CPU in µs\n\n", costGuests)
	fmt.Fprintln(w, "\trequests\tnot 2xx\tCPU\tof Redis\tin scripts\tof Postgres\ttrips\tcommands\tupstream\tbytes in\tbytes out\toutbox\tother rows\tWAL\t")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%d\t%d\t%.2f\t%.2f\t%d\t\n", c.name, c.requests, c.failed,
			c.cpu.Microseconds(), c.redisCPU.Microseconds(), c.scriptTime.Microseconds(), c.postgresCPU.Microseconds(),
			c.roundTrips, c.commands, c.upstreamCalls, c.bytesIn, c.bytesOut, c.outbox, c.otherRows, c.wal)
	}
	w.Flush()
}
