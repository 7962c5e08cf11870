// Package system owns the life of the local system: it starts the stores, the sandbox upstreams, the functions and the
// gateway in the order they need each other, says when a guest's search would be answered, and stops them again. It
// never knows what a function does.
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

// Options are what a person chooses.
type Options struct {
	Root    string         // of the repository
	State   string         // directory of everything that outlives a run; "": .local in Root
	Dataset string         // file of accommodations; "": the embedded ones
	PageDir string         // folder of the page's files; "": those in the binary
	Port    int            // of the gateway on 127.0.0.1; 0: any
	Out     io.Writer      // what is said to the person
	Backoff pubsub.Backoff // between pushes of one message; zero: broker.Local
}

func (o Options) state() string {
	if o.State != "" {
		return o.State
	}
	return filepath.Join(o.Root, ".local")
}

func (o Options) printf(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }

// Server is a local system that runs.
type Server struct {
	URL string // of the gateway

	cleanup []func()
}

// Run starts the system and serves until ctx ends, which is no error, however far the start has come.
func Run(ctx context.Context, o Options) error {
	said := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		o.printf("stopping")
		close(said)
	})()
	s, err := Start(ctx, o)
	if err == nil {
		defer s.Stop()
		o.printf("ready: %s", s.URL)
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		<-said
		return nil
	}
	return err
}

// Stop ends everything that Start began, in the opposite order.
func (s *Server) Stop() {
	for len(s.cleanup) > 0 {
		last := len(s.cleanup) - 1
		undo := s.cleanup[last]
		s.cleanup = s.cleanup[:last]
		undo()
	}
}

func (s *Server) addCleanup(undo func()) { s.cleanup = append(s.cleanup, undo) }

// Start returns when a search through the gateway is answered. When it fails it leaves nothing running.
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
		return nil, fmt.Errorf("a local system with this state already runs at %s: stop it first, or name another --state and --port", running.URL)
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	door, err := s.openListener(o.Port)
	if err != nil {
		return nil, err
	}
	front, doors, paths, err := o.handlers()
	if err != nil {
		return nil, err
	}

	var data *dataset.Dataset
	var kept dataStores
	all, within := errgroup.WithContext(ctx)
	all.Go(func() (err error) { data, err = loadDataset(o); return err })
	all.Go(func() (err error) { kept.database, err = startPostgres(within, &kept, state); return err })
	all.Go(func() (err error) { kept.redis, err = startRedis(within, &kept, state); return err })
	err = all.Wait()
	s.addCleanup(kept.stop)
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
	env, err := functionEnv(state, kept, broker, urls, flagsPath)
	if err != nil {
		return nil, err
	}
	behind, err := listen(0)
	if err != nil {
		return nil, err
	}
	s.addCleanup(func() { behind.Close() })
	base := "http://" + behind.Addr().String()
	bff, err := newTenantStub(state, base, env)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(state, "log", "functions.jsonl")
	if err := s.openFunctions(ctx, web.Functions(), env, log); err != nil {
		return nil, err
	}
	s.addCleanup(serve(behind, doors)) // ends before the log is closed: a relay that is cut off says so there
	parts, db, err := s.components(ctx, kept, broker, urls)
	if err != nil {
		return nil, err
	}
	events, jobs, telemetry, err := s.startMessaging(broker, db, joinBase(base, paths), o.Backoff)
	if err != nil {
		return nil, err
	}
	inside := adminapi.New(adminapi.Options{
		Components: parts, Sandbox: box, Data: data, FlagsPath: flagsPath, Events: events, Telemetry: telemetry, Jobs: jobs, DB: db,
		Tenant: bff, RequestLog: requestlog.Follow(log, web.BasePath+"/"),
	})
	door.setHandlers(page.New(front, o.PageDir, o.publicAPI()), inside)
	if err := runfile.Write(state, runfile.Run{PID: os.Getpid(), URL: s.URL, Env: env}); err != nil {
		return nil, err
	}
	s.addCleanup(func() { runfile.Remove(state) })

	o.printf("data:  %s", describeDataset(data))
	o.printf("state: %s (request log: log/functions.jsonl)", state)
	o.printf("doors: %s%s/… (api/internal.openapi.yaml)", base, internalBase)
	o.printf("queue: PUBSUB_EMULATOR_HOST=%s PUBSUB_PROJECT=%s", broker.Host, broker.Project)
	if err := probe(ctx, s.URL, data); err != nil {
		return nil, err
	}
	for _, u := range box.Upstreams {
		u.Reset() // the probe's calls are nobody's
	}
	return s, nil
}

// openFunctions sets the environment of the functions and opens them. Their log records go to a file: a terminal is no
// place for them, and a pipe that nobody reads would stop every request.
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

// setenv sets variables until the system stops.
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

// components are what healthz asks, and the pool that the outbox is read with.
func (s *Server) components(ctx context.Context, kept dataStores, broker *pubsub.Broker, urls map[string]string) ([]adminapi.Component, *pgxpool.Pool, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: kept.database})
	if err != nil {
		return nil, nil, err
	}
	s.addCleanup(db.Close)
	rdb := redisclient.Open(redisclient.Config{Addr: kept.redis})
	s.addCleanup(func() { rdb.Close() })
	parts := []adminapi.Component{
		{Name: "postgres", Ping: db.Ping},
		{Name: "redis", Ping: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }},
		{Name: "pubsub", Ping: broker.Ping},
	}
	for _, name := range sandbox.UpstreamNames {
		parts = append(parts, adminapi.Component{Name: name, Ping: func(ctx context.Context) error {
			return sandbox.Ping(ctx, http.DefaultClient, urls[name])
		}})
	}
	return parts, db, nil
}

func loadDataset(o Options) (*dataset.Dataset, error) {
	if o.Dataset == "" {
		return dataset.Embedded(), nil
	}
	return dataset.Load(o.Dataset)
}

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
