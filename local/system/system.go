// Package system owns the life of the local system: it starts the stores, the sandbox upstreams, the functions and the
// gateway in the order they need each other, says when a guest's search would be answered, and stops them again. It
// never knows what a function does.
package system

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

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/control"
	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/desk"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/local/traffic"
	page "melmastoon.ghasi.io/bff-consumer/local/web"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Options are what a person chooses.
type Options struct {
	Root    string         // of the repository
	State   string         // directory of everything that outlives a run; "": .local in Root
	Dataset string         // file of accommodations; "": the embedded ones
	Page    string         // folder of the page's files; "": those in the binary
	Port    int            // of the gateway on 127.0.0.1; 0: any
	Out     io.Writer      // what is said to the person
	Backoff broker.Backoff // between pushes of one message; zero: broker.Local
}

func (o Options) state() string {
	if o.State != "" {
		return o.State
	}
	return filepath.Join(o.Root, ".local")
}

func (o Options) say(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }

// System is a local system that runs.
type System struct {
	URL string // of the gateway

	cleanup []func()
}

// Run starts the system and serves until ctx ends, which is no error, however far the start has come.
func Run(ctx context.Context, o Options) error {
	said := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		o.say("stopping")
		close(said)
	})()
	s, err := Start(ctx, o)
	if err == nil {
		defer s.Stop()
		o.say("ready: %s", s.URL)
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		<-said
		return nil
	}
	return err
}

// Stop ends everything that Start began, in the opposite order.
func (s *System) Stop() {
	for len(s.cleanup) > 0 {
		last := len(s.cleanup) - 1
		undo := s.cleanup[last]
		s.cleanup = s.cleanup[:last]
		undo()
	}
}

func (s *System) later(undo func()) { s.cleanup = append(s.cleanup, undo) }

// Start returns when a search through the gateway is answered. When it fails it leaves nothing running.
func Start(ctx context.Context, o Options) (_ *System, err error) {
	s := &System{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	state, err := filepath.Abs(o.state())
	if err != nil {
		return nil, err
	}
	if running, ok := readRun(state); ok && answers(running.URL) {
		return nil, fmt.Errorf("a local system with this state already runs at %s: stop it first, or name another --state and --port", running.URL)
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	door, err := s.open(o.Port)
	if err != nil {
		return nil, err
	}
	front, doors, paths, err := o.fronts()
	if err != nil {
		return nil, err
	}

	var data *dataset.Dataset
	var kept stores
	all, within := errgroup.WithContext(ctx)
	all.Go(func() (err error) { data, err = load(o); return err })
	all.Go(func() (err error) { kept.database, err = startPostgres(within, &kept, state); return err })
	all.Go(func() (err error) { kept.redis, err = startRedis(within, &kept, state); return err })
	err = all.Wait()
	s.later(kept.stop)
	if err != nil {
		return nil, err
	}

	box := sandbox.New(data, time.Now)
	urls, stop, err := box.Serve()
	if err != nil {
		return nil, err
	}
	s.later(stop)
	flagsPath := filepath.Join(state, "flags.json")
	if err := control.ResetFlags(flagsPath); err != nil {
		return nil, err
	}
	pubsub, err := s.openBroker(ctx)
	if err != nil {
		return nil, err
	}
	env, err := environment(state, kept, pubsub, urls, flagsPath)
	if err != nil {
		return nil, err
	}
	behind, err := listen(0)
	if err != nil {
		return nil, err
	}
	s.later(func() { behind.Close() })
	base := "http://" + behind.Addr().String()
	bff, err := openTenant(state, base, env)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(state, "log", "functions.jsonl")
	if err := s.openFunctions(ctx, web.Functions(), env, log); err != nil {
		return nil, err
	}
	s.later(serve(behind, doors)) // ends before the log is closed: a relay that is cut off says so there
	parts, db, err := s.parts(ctx, kept, pubsub, urls)
	if err != nil {
		return nil, err
	}
	d, err := desk.Open(desk.Options{Broker: pubsub, Doors: below(base, paths), Backoff: o.Backoff, DB: db})
	if err != nil {
		return nil, err
	}
	s.later(d.Close)
	inside := control.New(parts, box, data, flagsPath, d, bff, traffic.Follow(log, web.Base+"/"))
	door.open(page.Over(front, o.Page, o.publicAPI()), inside)
	if err := writeRun(state, run{PID: os.Getpid(), URL: s.URL, Env: env}); err != nil {
		return nil, err
	}
	s.later(func() { removeRun(state) })

	o.say("data:  %s", describe(data))
	o.say("state: %s (request log: log/functions.jsonl)", state)
	o.say("doors: %s%s/… (api/internal.openapi.yaml)", base, doorsBase)
	o.say("queue: PUBSUB_EMULATOR_HOST=%s PUBSUB_PROJECT=%s", pubsub.Host, pubsub.Project)
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
func (s *System) openFunctions(ctx context.Context, functions []*web.Function, env map[string]string, logPath string) error {
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
	slog.SetDefault(slog.New(web.Log(log)))
	s.later(func() {
		slog.SetDefault(before)
		log.Close()
	})
	for _, f := range functions {
		if err := f.OpenTo(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// setenv sets variables until the system stops.
func (s *System) setenv(env map[string]string) error {
	for name, value := range env {
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		s.later(func() {
			if was {
				os.Setenv(name, before)
			} else {
				os.Unsetenv(name)
			}
		})
	}
	return nil
}

// parts are what healthz asks, and the pool that the outbox is read with.
func (s *System) parts(ctx context.Context, kept stores, pubsub *broker.Broker, urls map[string]string) ([]control.Part, *pgxpool.Pool, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: kept.database})
	if err != nil {
		return nil, nil, err
	}
	s.later(db.Close)
	rdb := keyspace.Open(keyspace.Config{Addr: kept.redis})
	s.later(func() { rdb.Close() })
	parts := []control.Part{
		{Name: "postgres", Ping: db.Ping},
		{Name: "redis", Ping: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }},
		{Name: "pubsub", Ping: pubsub.Ping},
	}
	for _, name := range sandbox.Names {
		parts = append(parts, control.Part{Name: name, Ping: func(ctx context.Context) error {
			return sandbox.Ping(ctx, http.DefaultClient, urls[name])
		}})
	}
	return parts, db, nil
}

func load(o Options) (*dataset.Dataset, error) {
	if o.Dataset == "" {
		return dataset.Embedded(), nil
	}
	return dataset.Load(o.Dataset)
}

func describe(data *dataset.Dataset) string {
	text := fmt.Sprintf("%s: %d places to stay in %d cities of %d countries",
		data.Report.Source, len(data.Properties), len(data.Cities), len(data.Countries))
	if data.Report.Skipped > 0 {
		first := data.Report.First[0]
		text += fmt.Sprintf("; %d rows skipped, first line %d: %s", data.Report.Skipped, first.Line, first.Reason)
	}
	if note := control.Attribution(data); note != "" {
		text += " (" + note + ")"
	}
	return text + "; prices, ratings and availability are synthetic"
}
