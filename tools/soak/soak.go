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

// options are the arguments of the program.
type options struct {
	Mutations int    // to commit
	Kills     int    // of random processes
	Rate      int    // upper bound of mutations per second, of all writers together
	Seed      uint64 // of the random choices of victims, times and broker faults
	Out       io.Writer
}

const (
	writers = 2
	relays  = 2

	refuseShare       = 0.20 // of publish requests fail as in an outage
	loseResponseShare = 0.05 // of the others are accepted, but the response is lost

	pollInterval = 50 * time.Millisecond
	stallTimeout = 2 * time.Minute // the trial fails after so long without progress
)

// soak is a trial.
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

// child is a process that starts again after it was killed.
type child struct {
	kind   string // "writer" or "relay"
	number int
	cmd    *exec.Cmd
	stdin  io.Closer
}

// runTrial runs a trial and prints its report. It returns an error when an event was lost, invented
// or out of order, when a row was charged with an attempt, or when more than 1 % of the mutations
// arrived twice without need.
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

// open starts the private stores, the broker and its faults. closeAll is never nil.
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

// run starts all processes and kills random ones at random points of the progress, until every
// committed event has been published.
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
	// Progress is the number of commits plus the number of arrivals. No process is killed in the
	// last tenth, so that the trial ends.
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
			return fmt.Errorf("soak: no progress for 2m0s: %d committed, %d arrived, %d not published", committed, s.arrivals.distinct(), waiting)
		}
	}
}

// killRandom kills a random process and starts it again. Once all mutations are committed it kills
// relays only.
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

// kill sends SIGKILL and waits for the end of the process.
func (c *child) kill() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	c.cmd.Process.Kill()
	c.cmd.Wait()
	c.stdin.Close()
	c.cmd = nil
}

var errFailed = errors.New("soak: the trial failed")
