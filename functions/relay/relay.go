package relay

import (
	"context"
	"errors"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	// queryTimeout limits a query for due shards, a claim of a batch and a read of consents.
	queryTimeout = 3 * time.Second
	// maxBatchesPerLease batches of a shard are sent before the worker turns to another shard.
	maxBatchesPerLease = 8
	// maxConcurrentRequests limits the requests to Pub/Sub under way in a run.
	maxConcurrentRequests = 64
)

// Relay publishes the pending rows of the outbox to Pub/Sub. It is safe for concurrent use. Several
// relays may work on one database at the same time, in one process or in many: a shard of the
// outbox is locked while a relay sends rows of it.
type Relay struct {
	db          *pgxpool.Pool
	rdb         redis.UniversalClient
	keys        redisclient.Keys
	broker      *pubsub.TopicAdminClient
	project     string
	runDuration time.Duration
	workers     int              // shards drained at the same time
	now         func() time.Time // for times written to rows; pauses and deadlines use the real clock
}

// Options is the data of a tick. A tick with an unknown member is refused.
type Options struct {
	DryRun bool `json:"dryRun"` // count the backlog and send nothing
	Once   bool `json:"once"`   // end when nothing more can be sent now, instead of after RELAY_RUN
}

// Serve answers a tick, a Pub/Sub push: it runs the relay and returns the Report with status 200. A
// tick takes RELAY_RUN (57 s by default), less with Options.Once or DryRun, and up to about 20 s
// more. A request that is no tick gets 400.
//
// When Run fails the answer is 503 if Postgres is unavailable and 500 for other errors, and Pub/Sub
// delivers the tick again; rows that were sent are marked by then, unless Postgres failed in
// between. Without Pub/Sub or Redis the answer is 200; the Report counts outages, and an undrained
// buffer is logged only. SIGTERM ends the run early, as a cancelled ctx does in Run. Concurrent
// ticks share the work.
func (r *Relay) Serve(w http.ResponseWriter, req *http.Request) error {
	m, err := pubsubpush.Decode(req)
	var o Options
	if err == nil {
		err = m.DecodeOptions(&o)
	}
	if err != nil {
		return problem.New(problem.MalformedRequest, "The request is not a tick of the relay.", err)
	}
	ctx, stop := signal.NotifyContext(req.Context(), syscall.SIGTERM)
	defer stop()
	report, err := r.Run(ctx, o)
	report.addToLog(ctx)
	if err != nil {
		return postgres.Problem(err)
	}
	report.recordMetrics(ctx, r.now())
	return web.WriteJSON(w, http.StatusOK, report)
}

// Run publishes pending rows until RELAY_RUN has passed or ctx ends; with Options.Once, until
// nothing more can be sent now; with Options.DryRun not at all. Then it counts the backlog. Batches
// under way at the end are finished: they start no further request, and usually take at most 13 s
// (a read of consents, a request, its marks). The count takes at most 8 s more, also after the end
// of ctx.
//
// A run polls Postgres every 10 ms to 5 s, and drains the Redis buffer every 3 s for up to 10 s. A
// batch of up to 32 rows costs two round trips to Postgres, reads of consents, and a request of at
// most 5 s to Pub/Sub for each session; a batch holds a connection and the advisory lock of its
// shard. RELAY_WORKERS batches (4) and 64 requests run at the same time. Runs may be concurrent.
//
// Without Pub/Sub no row is charged and Run returns no error; Report.Outages counts the failed
// requests, and a topic's breaker opens for 500 ms after five. A refused row gets a backoff of 1 s
// to 10 min, and is parked at the 20th refusal. A row may be sent twice after a crash or a failed
// mark. Without Redis the buffered rows stay there, and rows of the table are sent. Without
// Postgres nothing is sent. Run returns an error, with the Report so far, when the backlog cannot
// be counted, and when the last poll or batch failed in Postgres in a run that neither published
// nor deleted a row.
func (r *Relay) Run(ctx context.Context, o Options) (Report, error) {
	run := newRun(r, o)
	if !o.DryRun {
		limited, cancel := context.WithTimeout(ctx, r.runDuration)
		run.drain(limited)
		cancel()
	}
	return run.report(ctx)
}

// Close closes the connections to Postgres, Redis and Pub/Sub. Close waits for borrowed connections
// of Postgres, so call Close once, after the last run. Errors are ignored.
func (r *Relay) Close() {
	r.db.Close()
	r.rdb.Close()
	r.broker.Close()
}

// run is the state of one run: a scheduler polls for shards with due rows, and workers drain them.
type run struct {
	relay        *Relay
	options      Options
	counters     counters
	breakers     *breakers
	requestSlots chan struct{} // holds a token for each request under way

	mu             sync.Mutex
	pollErr        error // of the last poll
	shardErr       error // of the last batch
	drainErrLogged bool  // a run logs the first failure of the buffer only
}

func newRun(r *Relay, o Options) *run {
	return &run{relay: r, options: o, breakers: newBreakers(), requestSlots: make(chan struct{}, maxConcurrentRequests)}
}

// drain hands due shards to the workers until ctx ends; with Options.Once, until a poll and the
// batches after it moved no row. It returns after the last worker has finished its batch.
func (r *run) drain(ctx context.Context) {
	var background sync.WaitGroup
	defer background.Wait()
	if r.options.Once {
		r.drainBuffer(ctx)
		if r.isEmpty(ctx) {
			return
		}
	} else {
		background.Go(func() { r.drainBufferPeriodically(ctx) })
	}
	jobs, done := make(chan lease), make(chan lease)
	defer close(jobs)
	for range r.relay.workers {
		background.Go(func() {
			for l := range jobs {
				r.drainShard(ctx, &l)
				done <- l
			}
		})
	}
	s := newScheduler()
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		next, ready := s.next(r.relay.workers)
		idle := jobs
		if !ready {
			idle = nil // a nil channel blocks: no job is handed out
		}
		select {
		case <-ctx.Done():
			for len(s.leased) > 0 {
				delete(s.leased, (<-done).shard)
			}
			return
		case idle <- next:
			s.begin(next)
		case l := <-done:
			if s.end(l, r.breakers.allClosed()) {
				poll.Reset(max(0, pollBusy-time.Since(s.polledAt)))
			}
		case <-poll.C:
			if r.options.Once && s.isIdle() {
				return
			}
			poll.Reset(r.pollDue(ctx, s))
		}
	}
}

// isEmpty reports whether the outbox has no pending row. Nearly always it has none, and on a new
// connection this query is faster than a poll. It reports false after 3 s and without Postgres: the
// poll that follows reports the failure.
func (r *run) isEmpty(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	pending, err := outbox.HasPending(ctx, r.relay.db)
	return err == nil && !pending
}

// drainShard sends the due rows of the lease's shard batch by batch, until the end of the shard or
// for maxBatchesPerLease batches. A failure of Postgres ends the lease.
func (r *run) drainShard(ctx context.Context, l *lease) {
	began := l.cursor
	for range maxBatchesPerLease {
		if ctx.Err() != nil {
			return
		}
		next, err := r.processBatch(ctx, l)
		if err != nil {
			r.setShardErr(err)
			l.blocked = true
			return
		}
		r.setShardErr(nil)
		if l.cursor = next; next == "" {
			break
		}
	}
	// A lease that began in the middle has not seen the rows before its cursor.
	l.hasMore = l.cursor != "" || began != ""
}

// setPollErr keeps the result of the last poll, and counts a failure.
func (r *run) setPollErr(err error) { r.setErr(&r.pollErr, err) }

// setShardErr keeps the result of the last batch, and counts a failure.
func (r *run) setShardErr(err error) { r.setErr(&r.shardErr, err) }

func (r *run) setErr(last *error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *last = err; err != nil {
		r.counters.failures.Add(1)
	}
}

func (r *run) lastErr() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.pollErr, r.shardErr)
}
