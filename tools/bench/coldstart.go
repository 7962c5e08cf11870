package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/pack"
)

// emptySource is a function that does nothing. Its module has the requirements of search.
const emptySource = `package empty

import (
	"io"
	"net/http"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
)

func init() {
	functions.HTTP("Empty", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
}
`

const emptyFolder = "empty"

// startTarget is a packed function and the first request of each start.
type startTarget struct {
	folder, target string
	next           func() []byte
	before         func(context.Context) error // runs before each start; may be nil

	binary    string
	durations []time.Duration // from the start of the process to the end of its first response
	cpu       []time.Duration // user and system time of the process until then
}

// measureColdStart packs every function, or those of o.Only, builds the archives as the platform
// does, and measures the time from the start of a process to its first response. The reference is
// an empty function, built the same way: the difference is the cost of our code. The programs start
// in turns; the stores are warm and the programs are in the page cache.
func measureColdStart(ctx context.Context, o options) error {
	h, err := setUp(ctx, o.Volatile)
	if err != nil {
		return err
	}
	defer h.close()
	broker, err := pubsubtest.Start()
	if err != nil {
		return err
	}
	defer broker.Stop()
	h.env = append(h.env, "PUBSUB_EMULATOR_HOST="+broker.Addr, "PUBSUB_PROJECT=bench")
	folders, err := repository.FunctionFolders(o.Root)
	if err != nil {
		return err
	}
	if o.Only != "" {
		folders = strings.Split(o.Only, ",")
	}
	programs := map[string]string{}
	for _, folder := range append([]string{emptyFolder}, folders...) {
		if programs[folder], err = h.buildFolder(ctx, o, folder); err != nil {
			return err
		}
	}
	// after the builds, which take longer than a cache entry stays fresh
	starters, err := h.startTargets(ctx, o.Starts)
	if err != nil {
		return err
	}
	starters = slices.DeleteFunc(starters, func(s *startTarget) bool {
		s.binary = programs[s.folder]
		return s.binary == ""
	})
	if len(starters) != len(programs) {
		return fmt.Errorf("bench: %d programs, but requests for %d of them", len(programs), len(starters))
	}
	for range o.Starts {
		for _, s := range starters {
			if err := h.measureStart(ctx, s); err != nil {
				return fmt.Errorf("bench: %s: %w", s.target, err)
			}
		}
	}
	reportStarts(o, starters)
	return nil
}

// buildFolder packs and builds the program of a folder and returns its path.
func (h *environment) buildFolder(ctx context.Context, o options, folder string) (string, error) {
	fmt.Fprintf(o.Out, "packing and building %s\n", folder)
	archive, err := []byte(nil), error(nil)
	if folder == emptyFolder {
		archive, err = h.packEmpty(ctx, o.Root)
	} else {
		archive, _, err = pack.FunctionArchive(ctx, o.Root, folder)
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.dir, "built", folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return pack.Build(ctx, archive, dir)
}

// packEmpty packs the empty function with the go.mod of search, so that both link the same
// versions.
func (h *environment) packEmpty(ctx context.Context, root string) ([]byte, error) {
	stage := filepath.Join(h.dir, "stage")
	dir := filepath.Join(stage, "functions", emptyFolder)
	for to, from := range map[string]string{
		filepath.Join(dir, "go.mod"):             filepath.Join(root, "functions", "search", "go.mod"),
		filepath.Join(dir, "go.sum"):             filepath.Join(root, "functions", "search", "go.sum"),
		filepath.Join(stage, "shared", "go.mod"): filepath.Join(root, "shared", "go.mod"),
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "function.go"), []byte(emptySource), 0o644); err != nil {
		return nil, err
	}
	return pack.ModuleArchive(ctx, dir)
}

// startTargets returns the empty function and one entry point of every folder, each with a typical
// first request: lists and pages are in the cache, the guest has a session, and the outbox is
// empty. Requests for one-time operations have a copy for each start.
func (h *environment) startTargets(ctx context.Context, starts int) ([]*startTarget, error) {
	searching, err := h.startFunction("Search")
	if err != nil {
		return nil, err
	}
	cookie, _, _, err := h.warmCache(ctx, searching)
	if err != nil {
		return nil, err
	}
	looking, err := h.startFunction("Detail")
	if err != nil {
		return nil, err
	}
	hotel := h.data.Properties[0]
	page := request("GET", web.BasePath+"/hotels/"+hotel.ID, "", "Accept-Encoding", "gzip")
	if _, _, err := looking.do(page); err != nil {
		return nil, err
	}
	using := &preparedRequests{}
	if using.list, err = h.consumeRequests(ctx, starts); err != nil {
		return nil, err
	}
	known := []string{"Accept-Encoding", "gzip", "Cookie", cookie}
	elsewhere := id.New(id.Tenant, time.Now()) // a tenant without hotels: invalidates no requested page
	return []*startTarget{
		{folder: emptyFolder, target: "Empty", next: repeat(request("GET", "/", ""))},
		{folder: "search", target: "Search", next: repeat(searchRequest(cityGeo, known...))},
		{folder: "detail", target: "Detail", next: repeat(page)},
		{folder: "handoff", target: "Handoff", next: func() []byte {
			return request("POST", web.BasePath+"/handoff", fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,%s}`, hotel.Tenant.ID, hotel.ID, stayFields()),
				"Cookie", cookie, "Idempotency-Key", id.New(id.Request, time.Now()))
		}},
		{folder: "consume", target: "Consume", next: using.next},
		{folder: "wishlist", target: "WishlistList", next: repeat(request("GET", web.BasePath+"/wishlist", "", known...))},
		{folder: "session", target: "Session", next: repeat(request("GET", web.BasePath+"/session", "", known...))},
		{folder: "telemetry", target: "TelemetryFunnel",
			next: repeat(request("POST", web.BasePath+"/telemetry/funnel", `{"step":"map.opened"}`, known...))},
		{folder: "invalidate", target: "TenantReinstated", next: func() []byte {
			now := timestamp.Format(time.Now())
			return pushRequest("/internal/events/tenant-reinstated", fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":"melmastoon.tenant.reinstated.v1",`+
				`"version":1,"occurredAt":%q,"publishedAt":%q,"producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},`+
				`"payload":{"tenantId":%q,"reinstatedAt":%q}}`, id.New(id.Event, time.Now()), now, now, elsewhere, now))
		}},
		{folder: "relay", target: "Relay", next: repeat(pushRequest("/internal/jobs/relay", `{"once":true}`)), before: func(ctx context.Context) error {
			// publishing the events of other starts is no part of this start
			_, err := h.db.Exec(ctx, "DELETE FROM bff_consumer.outbox")
			return err
		}},
		{folder: "sweep", target: "SweepInbox", next: repeat(pushRequest("/internal/jobs/sweep-inbox", `{}`))},
		{folder: "migrate", target: "Migrate", next: repeat(request("POST", "/internal/migrate", ""))},
	}, nil
}

// pushRequest returns the request by which Pub/Sub pushes data.
func pushRequest(path, data string) []byte {
	return request("POST", path, fmt.Sprintf(`{"message":{"data":%q,"messageId":"1"},"subscription":"projects/p/subscriptions/s"}`,
		base64.StdEncoding.EncodeToString([]byte(data))))
}

// measureStart starts a process, sends one request and kills the process.
func (h *environment) measureStart(ctx context.Context, s *startTarget) error {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	ask := s.next()
	cmd := exec.CommandContext(ctx, s.binary)
	cmd.Env = append(h.env[:len(h.env):len(h.env)], "FUNCTION_TARGET="+s.target, "PORT="+strconv.Itoa(port))
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	err = firstResponse(fmt.Sprintf("127.0.0.1:%d", port), ask)
	took := time.Since(began)
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		return err
	}
	s.durations = append(s.durations, took)
	s.cpu = append(s.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return nil
}

const (
	startTimeout = 10 * time.Second
	dialInterval = 100 * time.Microsecond // dialing takes about 1 % of one core from the starting process
)

// firstResponse dials addr until a process listens, sends the request and reads the whole response.
// It fails after startTimeout and for a status of 300 and more.
func firstResponse(addr string, ask []byte) error {
	for until := time.Now().Add(startTimeout); ; time.Sleep(dialInterval) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			if time.Now().After(until) {
				return fmt.Errorf("does not listen: %w", err)
			}
			continue
		}
		defer conn.Close()
		conn.SetDeadline(until)
		if _, err := conn.Write(ask); err != nil {
			return err
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode >= 300 {
			err = errors.New(res.Status + " " + strings.TrimSpace(string(body)))
		}
		return err
	}
}

func reportStarts(o options, all []*startTarget) {
	fmt.Fprintf(o.Out, "\nfrom the start of a process to its first response, medians of %d starts in turns\n\n", o.Starts)
	w := tabwriter.NewWriter(o.Out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfirst response\tof empty\tleast\tCPU\tof empty\t")
	base, baseCPU := medianDuration(all[0].durations), medianDuration(all[0].cpu)
	for _, s := range all {
		took, cpu := medianDuration(s.durations), medianDuration(s.cpu)
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%s\t%.2f\t\n", s.folder, formatMillis(took), float64(took)/float64(base), formatMillis(slices.Min(s.durations)),
			formatMillis(cpu), float64(cpu)/float64(baseCPU))
	}
	w.Flush()
}

func medianDuration(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func formatMillis(d time.Duration) string { return fmt.Sprintf("%.1fms", d.Seconds()*1000) }
