// Package server starts and stops the local system: the stores, the sandbox upstreams, Pub/Sub, the
// functions, the scheduler and the gateway, in the order of their dependencies. It reports
// readiness after a search through the gateway has succeeded. It contains no logic of any function.
package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/local/adminapi"
	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/requestlog"
	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	page "melmastoon.ghasi.io/bff-consumer/local/web"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Options are the settings of the command line.
type Options struct {
	Root    string         // of the repository
	State   string         // directory of all files that outlive a run; "" is .local in Root
	Dataset string         // file of accommodations; "" is the embedded data set
	PageDir string         // directory of the page's files; "" uses the files in the binary
	Port    int            // of the gateway on 127.0.0.1; 0 is any free port
	Out     io.Writer      // messages for the developer
	Backoff pubsub.Backoff // between pushes of a message; zero is pubsub.DefaultBackoff
}

// state returns the state directory.
func (o Options) state() string {
	if o.State != "" {
		return o.State
	}
	return filepath.Join(o.Root, ".local")
}

func (o Options) printf(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }

// Server is a running local system.
type Server struct {
	URL string // of the gateway

	cleanup []func() // run by Stop in reverse order
}

// Run starts the system and serves until ctx ends. It prints "ready: <URL>" when the system is
// ready and "stopping" when ctx ends. It returns the error of Start, or nil once ctx has ended,
// even during the start.
func Run(ctx context.Context, o Options) error {
	printed := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		o.printf("stopping")
		close(printed)
	})()
	s, err := Start(ctx, o)
	if err == nil {
		defer s.Stop()
		o.printf("ready: %s", s.URL)
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		<-printed
		return nil
	}
	return err
}

// Stop stops all parts in reverse order of their start. Requests in flight get up to 5 s to finish;
// pushes under way are cut off. Stop may be called repeatedly, but not concurrently.
func (s *Server) Stop() {
	for len(s.cleanup) > 0 {
		last := len(s.cleanup) - 1
		undo := s.cleanup[last]
		s.cleanup = s.cleanup[:last]
		undo()
	}
}

func (s *Server) addCleanup(undo func()) { s.cleanup = append(s.cleanup, undo) }

// Start starts the system and returns when a search through the gateway has succeeded. It sets the
// environment variables of the functions and replaces slog's default logger until Stop, so a
// process can run one Server at a time.
//
// The stores get 60 s to start, the broker 10 s and the first search 20 s. Start returns an error,
// and leaves nothing running, if a part does not start in that time, if another system uses the
// same state directory, if the port is in use, if the data set has no usable row, or if ctx ends.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	state, err := filepath.Abs(o.state())
	if err != nil {
		return nil, err
	}
	if running, ok := runfile.Read(state); ok && running.IsRunning() {
		return nil, fmt.Errorf("a local system with this state already runs at %s: stop it first, or choose another --state and --port", running.URL)
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	startup, err := s.openListener(o.Port)
	if err != nil {
		return nil, err
	}
	public, internal, paths, err := o.handlers()
	if err != nil {
		return nil, err
	}

	var data *dataset.Dataset
	var stores dataStores
	all, within := errgroup.WithContext(ctx)
	all.Go(func() (err error) { data, err = loadDataset(o); return err })
	all.Go(func() (err error) { stores.database, err = startPostgres(within, &stores, state); return err })
	all.Go(func() (err error) { stores.redis, err = startRedis(within, &stores, state); return err })
	err = all.Wait()
	s.addCleanup(stores.stop)
	if err != nil {
		return nil, err
	}

	box := sandbox.New(data, time.Now)
	urls, stop, err := box.Serve()
	if err != nil {
		return nil, err
	}
	s.addCleanup(stop)
	flagsPath := filepath.Join(state, "flags.json")
	if err := adminapi.ResetFlags(flagsPath); err != nil {
		return nil, err
	}
	broker, err := s.openBroker(ctx)
	if err != nil {
		return nil, err
	}
	env, err := functionEnv(state, stores, broker, urls, flagsPath)
	if err != nil {
		return nil, err
	}
	internalListener, err := listen(0)
	if err != nil {
		return nil, err
	}
	s.addCleanup(func() { internalListener.Close() })
	base := "http://" + internalListener.Addr().String()
	bff, err := newTenantStub(state, base, env)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(state, "log", "functions.jsonl")
	if err := s.openFunctions(ctx, web.Functions(), env, log); err != nil {
		return nil, err
	}
	// Stops before the log file is closed, because a relay that is cut off writes a log record.
	s.addCleanup(serve(internalListener, internal))
	components, db, err := s.components(ctx, stores, broker, urls)
	if err != nil {
		return nil, err
	}
	events, jobs, telemetry, err := s.startMessaging(broker, db, joinBase(base, paths), o.Backoff)
	if err != nil {
		return nil, err
	}
	admin := adminapi.New(adminapi.Options{
		Components: components, Sandbox: box, Data: data, FlagsPath: flagsPath, Events: events, Telemetry: telemetry, Jobs: jobs, DB: db,
		Tenant: bff, RequestLog: requestlog.Follow(log, web.BasePath+"/"),
	})
	startup.setHandlers(page.New(public, o.PageDir, o.publicAPI()), admin)
	if err := runfile.Write(state, runfile.Run{PID: os.Getpid(), URL: s.URL, Env: env}); err != nil {
		return nil, err
	}
	s.addCleanup(func() { runfile.Remove(state) })

	o.printf("data: %s", describeDataset(data))
	o.printf("state: %s (request log: log/functions.jsonl)", state)
	o.printf("internal endpoints: %s%s/… (api/internal.openapi.yaml)", base, internalBase)
	o.printf("Pub/Sub: PUBSUB_EMULATOR_HOST=%s PUBSUB_PROJECT=%s", broker.Host, broker.Project)
	if err := probe(ctx, s.URL, data); err != nil {
		return nil, err
	}
	for _, u := range box.Upstreams {
		u.Reset() // the counters exclude the calls of the probe
	}
	return s, nil
}

// openFunctions sets the environment of the functions and opens them. It truncates the file logPath
// and sends their log records there: the records would flood a terminal, and a pipe without a
// reader would block every request.
func (s *Server) openFunctions(ctx context.Context, functions []*web.Function, env map[string]string, logPath string) error {
	if err := s.setenv(env); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	before := slog.Default()
	slog.SetDefault(slog.New(web.LocalLogHandler(log)))
	s.addCleanup(func() {
		slog.SetDefault(before)
		log.Close()
	})
	for _, f := range functions {
		if err := f.OpenWithLog(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// setenv sets environment variables until Stop.
func (s *Server) setenv(env map[string]string) error {
	for name, value := range env {
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		s.addCleanup(func() {
			if was {
				os.Setenv(name, before)
			} else {
				os.Unsetenv(name)
			}
		})
	}
	return nil
}

// components returns the components of healthz and a pool for the outbox. It dials Postgres.
func (s *Server) components(ctx context.Context, stores dataStores, broker *pubsub.Broker, urls map[string]string) ([]adminapi.Component, *pgxpool.Pool, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: stores.database})
	if err != nil {
		return nil, nil, err
	}
	s.addCleanup(db.Close)
	rdb := redisclient.Open(redisclient.Config{Addr: stores.redis})
	s.addCleanup(func() { rdb.Close() })
	all := []adminapi.Component{
		{Name: "postgres", Ping: db.Ping},
		{Name: "redis", Ping: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }},
		{Name: "pubsub", Ping: broker.Ping},
	}
	for _, name := range sandbox.UpstreamNames {
		all = append(all, adminapi.Component{Name: name, Ping: func(ctx context.Context) error {
			return sandbox.Ping(ctx, http.DefaultClient, urls[name])
		}})
	}
	return all, db, nil
}

func loadDataset(o Options) (*dataset.Dataset, error) {
	if o.Dataset == "" {
		return dataset.Embedded(), nil
	}
	return dataset.Load(o.Dataset)
}

// describeDataset returns one line about the data set, with the number of skipped rows and the
// reason for the first.
func describeDataset(data *dataset.Dataset) string {
	text := fmt.Sprintf("%s: %d places to stay in %d cities of %d countries",
		data.Report.Source, len(data.Properties), len(data.Cities), len(data.Countries))
	if data.Report.Skipped > 0 {
		first := data.Report.FirstSkipped[0]
		text += fmt.Sprintf("; %d rows skipped, first line %d: %s", data.Report.Skipped, first.Line, first.Reason)
	}
	if note := adminapi.Attribution(data); note != "" {
		text += " (" + note + ")"
	}
	return text + "; prices, ratings and availability are synthetic"
}
