// Package soak owns the long trial of the way out: mutations are committed and events are relayed while the processes
// that do it are killed at random and the broker fails. It has stores of its own and judges by what was committed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

// options are how much.
type options struct {
	Mutations int    // to be committed
	Kills     int    // of processes, at random
	Rate      int    // mutations per second at most, of all writers
	Seed      uint64 // of who is killed when, and of the broker's moods
	Out       io.Writer
}

const (
	writers = 2
	relays  = 2

	refuseShare       = 0.20 // of requests are refused as in an outage
	loseResponseShare = 0.05 // of the rest are taken without an answer

	pollInterval = 50 * time.Millisecond
	stallTimeout = 2 * time.Minute // without progress; then something is wrong
)

// soak is one trial.
type soak struct {
	options
	random   *rand.Rand
	db       *pgxpool.Pool
	broker   *pubsubtest.Broker
	arrivals *arrivalLog
	env      []string

	children []*child
	killed   map[string]int
}

// child is a process of a kind, started again whenever it was killed.
type child struct {
	kind   string // "writer" or "relay"
	number int
	cmd    *exec.Cmd
	stdin  io.Closer
}

// runTrial runs a trial and reports it. It fails when something was lost, invented or out of order, or came too often.
func runTrial(ctx context.Context, o options) (Report, error) {
	s := &soak{options: o, random: rand.New(rand.NewPCG(o.Seed, 1)), killed: map[string]int{}}
	fmt.Fprintf(o.Out, "seed %d: %d mutations, %d writers, %d relays, %d kills\n", o.Seed, o.Mutations, writers, relays, o.Kills)
	closeAll, err := s.open(ctx)
	defer closeAll()
	if err != nil {
		return Report{}, err
	}
	begun := time.Now()
	if err := s.run(ctx); err != nil {
		return Report{}, err
	}
	report, err := s.evaluate(ctx)
	if err != nil {
		return report, err
	}
	report.Took = time.Since(begun)
	fmt.Fprint(o.Out, report)
	return report, report.check()
}

func (s *soak) open(ctx context.Context) (closeAll func(), err error) {
	var undo []func()
	closeAll = func() {
		for _, u := range slices.Backward(undo) {
			u()
		}
	}
	url, stopPostgres, err := localstores.StartPostgres(ctx, "", localstores.PostgresOptions{})
	if err != nil {
		return closeAll, err
	}
	undo = append(undo, func() { stopPostgres() })
	redis, stopRedis, err := localstores.StartRedis(ctx, "", localstores.RedisOptions{})
	if err != nil {
		return closeAll, err
	}
	undo = append(undo, func() { stopRedis() })
	if err := migrations.Apply(ctx, url); err != nil {
		return closeAll, err
	}
	if s.db, err = pgxpool.New(ctx, url); err != nil {
		return closeAll, err
	}
	undo = append(undo, s.db.Close)
	if _, err := s.db.Exec(ctx, ledgerSchema); err != nil {
		return closeAll, err
	}
	if s.broker, err = pubsubtest.Start(); err != nil {
		return closeAll, err
	}
	undo = append(undo, s.broker.Stop)
	s.arrivals = newArrivalLog()
	s.broker.SetHandler(s.arrivals.record)
	s.broker.SetBehavior(faultInjector(rand.New(rand.NewPCG(s.Seed, 2)), s.arrivals))
	s.env = append(os.Environ(), "ENVIRONMENT=soak", "DATABASE_URL="+url, "REDIS_ADDR="+redis, "CLOUDSQL_INSTANCE=", "PUBSUB_PROJECT=soak",
		"PUBSUB_EMULATOR_HOST="+s.broker.Addr, "RELAY_RUN=10s",
		"SOAK_SEED="+strconv.FormatUint(s.Seed, 10), "SOAK_RATE="+strconv.Itoa(s.Rate/writers))
	undo = append(undo, func() {
		for _, c := range s.children {
			c.kill()
		}
	})
	return closeAll, nil
}

// run starts everybody and kills some whenever so much was done, until all that was committed has arrived.
func (s *soak) run(ctx context.Context) error {
	for i := range writers {
		s.children = append(s.children, &child{kind: "writer", number: i})
	}
	for i := range relays {
		s.children = append(s.children, &child{kind: "relay", number: i})
	}
	for _, c := range s.children {
		if err := s.start(c); err != nil {
			return err
		}
	}
	// Half of the work is to commit, the other half to deliver; in the last tenth everybody lives, so that there is an
	// end.
	deaths := make([]int, s.Kills)
	for i := range deaths {
		deaths[i] = s.random.IntN(2 * s.Mutations * 9 / 10)
	}
	slices.Sort(deaths)
	writing := true
	last, moved := 0, time.Now()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var committed, waiting int
		err := s.db.QueryRow(ctx, `
			SELECT (SELECT count(*) FROM soak.ledger),
			       (SELECT count(*) FROM bff_consumer.outbox WHERE published_at IS NULL)`).Scan(&committed, &waiting)
		if err != nil {
			return err
		}
		done := min(committed, s.Mutations) + min(s.arrivals.distinct(), s.Mutations)
		for len(deaths) > 0 && done >= deaths[0] {
			deaths = deaths[1:]
			if err := s.killRandom(writing); err != nil {
				return err
			}
		}
		if writing && committed >= s.Mutations {
			writing = false
			for _, c := range s.children[:writers] {
				c.kill()
			}
		}
		if !writing && waiting == 0 && len(deaths) == 0 {
			return nil
		}
		if done+s.arrivals.arrivals() != last {
			last, moved = done+s.arrivals.arrivals(), time.Now()
		}
		if time.Since(moved) > stallTimeout {
			return fmt.Errorf("soak: nothing moves: %d committed, %d arrived, %d wait", committed, s.arrivals.distinct(), waiting)
		}
	}
}

func (s *soak) killRandom(writing bool) error {
	victims := s.children
	if !writing {
		victims = s.children[writers:]
	}
	c := victims[s.random.IntN(len(victims))]
	c.kill()
	s.killed[c.kind]++
	return s.start(c)
}

func (s *soak) start(c *child) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.cmd = exec.Command(self, childVerb)
	c.cmd.Env = append(s.env[:len(s.env):len(s.env)], "SOAK_CHILD="+c.kind, "SOAK_NUMBER="+strconv.Itoa(c.number))
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("soak: start a %s: %w", c.kind, err)
	}
	return nil
}

// kill is SIGKILL.
func (c *child) kill() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	c.cmd.Process.Kill()
	c.cmd.Wait()
	c.stdin.Close()
	c.cmd = nil
}

var errFailed = errors.New("soak: the trial is not passed")
