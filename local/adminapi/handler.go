// Package adminapi owns the routes under /_local/, for tests and for developers. The routes show
// the state of the local system, change its behaviour, publish events and run jobs. The package is
// never deployed.
package adminapi

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/requestlog"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Prefix is the path prefix of all routes.
const Prefix = "/_local/"

// Component is a part of the local system that healthz checks.
type Component struct {
	Name string
	Ping func(context.Context) error // nil error: the component answers
}

// Options are the parts of the local system that the routes work on. The Handler closes none of
// them.
type Options struct {
	Components []Component
	Sandbox    *sandbox.Sandbox
	Data       *dataset.Dataset
	FlagsPath  string // of the flags document that the functions read
	Events     *pubsub.PlatformEvents
	Telemetry  *pubsub.TelemetryLog
	Jobs       *scheduler.Scheduler
	DB         *pgxpool.Pool // of the outbox
	Tenant     *tenantstub.BFF
	RequestLog *requestlog.Follower
}

// Handler serves the routes. It is safe for concurrent use.
type Handler struct {
	parts  Options
	flags  *flagsFile
	mux    *http.ServeMux
	routes []string // "GET /_local/healthz", sorted
}

// New returns a Handler. It does no input or output. A route whose part is nil in o panics when it
// is called.
func New(o Options) *Handler {
	c := &Handler{parts: o, flags: &flagsFile{path: o.FlagsPath}, mux: http.NewServeMux()}
	c.mux.HandleFunc(Prefix, c.notFound)
	for pattern, handler := range map[string]web.Handler{
		"GET /_local/healthz":             c.health,
		"GET /_local/upstreams":           c.upstreams,
		"GET /_local/upstreams/{name}":    c.upstream,
		"PUT /_local/upstreams/{name}":    c.setBehaviour,
		"DELETE /_local/upstreams":        c.resetAll,
		"DELETE /_local/upstreams/{name}": c.reset,
		"GET /_local/flags":               c.getFlags,
		"PUT /_local/flags":               c.putFlags,
		"DELETE /_local/flags":            c.deleteFlags,
		"GET /_local/telemetry":           c.telemetry,
		"GET /_local/events":              c.events,
		"POST /_local/events":             c.publishEvent,
		"GET /_local/jobs":                c.jobs,
		"POST /_local/jobs/{job}":         c.runJob,
		"POST /_local/tenant/bootstrap":   c.bootstrap,
		"GET /_local/inside":              c.overview,
		"GET /_local/places":              c.places,
		"GET /_local/dataset":             c.dataset,
		"GET /_local/dataset/{id}":        c.propertySource,
	} {
		c.routes = append(c.routes, pattern)
		c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			if err := handler(w, r); err != nil {
				gateway.WriteProblem(w, r, err)
			}
		})
	}
	slices.Sort(c.routes)
	return c
}

// ServeHTTP serves a route. Errors become problem+json responses.
func (c *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := &newlineWriter{ResponseWriter: w}
	c.mux.ServeHTTP(l, r)
	if l.hasBody {
		io.WriteString(w, "\n")
	}
}

// newlineWriter records whether a response has a body. ServeHTTP appends a line feed to every body,
// because developers call these routes in a terminal.
type newlineWriter struct {
	http.ResponseWriter
	hasBody bool
}

func (l *newlineWriter) WriteHeader(status int) {
	l.Header().Del("Content-Length") // the line feed makes the body longer; net/http sets the new length
	l.ResponseWriter.WriteHeader(status)
}

func (l *newlineWriter) Write(p []byte) (int, error) {
	l.hasBody = true
	return l.ResponseWriter.Write(p)
}

// notFound responds to requests without a route: 405 if the path has routes for other methods, else
// 404.
func (c *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); pattern != Prefix {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		p := problem.New(problem.ResourceNotFound, "The local system has no such route. The member routes lists all routes.", nil)
		gateway.WriteProblem(w, r, p.WithExtension("routes", c.routes))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	gateway.WriteProblem(w, r, problem.New(problem.MethodNotAllowed, "See Allow for the methods of this address.", nil))
}

// pingTimeout bounds every call of the Handler to a store or to the broker, except RunJob.
const pingTimeout = 2 * time.Second

// pingAll pings all components in parallel, within pingTimeout. state holds "ok" or the error text
// by component name.
func pingAll(ctx context.Context, components []Component) (state map[string]string, healthy bool) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	errs := make([]error, len(components))
	var wait sync.WaitGroup
	for i, component := range components {
		wait.Go(func() { errs[i] = component.Ping(ctx) })
	}
	wait.Wait()
	state, healthy = map[string]string{}, true
	for i, component := range components {
		state[component.Name] = "ok"
		if errs[i] != nil {
			state[component.Name], healthy = errs[i].Error(), false
		}
	}
	return state, healthy
}

type healthResponse struct {
	Status     string            `json:"status"` // ok or unavailable
	Components map[string]string `json:"parts"`
}

// health responds 200 if all components answer within 2 s, else 503, with the state of each
// component.
func (c *Handler) health(w http.ResponseWriter, r *http.Request) error {
	state, healthy := pingAll(r.Context(), c.parts.Components)
	if !healthy {
		return web.WriteJSON(w, http.StatusServiceUnavailable, healthResponse{"unavailable", state})
	}
	return web.WriteJSON(w, http.StatusOK, healthResponse{"ok", state})
}
