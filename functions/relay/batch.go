package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	// batchSize rows are sent in one transaction. After a kill, at most so many rows of each
	// shard in work were sent and not marked; another relay sends the rows again.
	batchSize      = 32
	requestTimeout = 5 * time.Second
	markTimeout    = 5 * time.Second
	// batchWindow is how long a batch starts requests. The next batch sends the rest of the rows.
	batchWindow = 10 * time.Second
	// idleTxTimeout is how long Postgres keeps the transaction of a silent relay. The longest
	// silence of a live relay ends with the last request of the batch.
	idleTxTimeout  = batchWindow + requestTimeout + 5*time.Second
	maxAttempts    = 20 // the refusal with this number parks the row
	minBackoff     = time.Second
	maxBackoff     = 10 * time.Minute
	maxErrorLength = 300 // bytes of last_error
)

// batch is up to 32 rows of a shard from the claim to the marks.
type batch struct {
	run      *run
	rows     *outbox.Batch
	deadline time.Time // no request starts later
	ctx      context.Context
	consent  consentState

	mu      sync.Mutex
	marks   outbox.Marks
	blocked bool // a row was left because the topic is unavailable
}

// processBatch claims, sends and marks the next rows of the lease's shard, and returns the cursor
// of the next batch, or "" at the end of the shard and when another relay holds the shard. A batch
// is two round trips to Postgres, a read of consents before each request more than 2 ms after the
// last read, and at least a request to Pub/Sub for each session. When Postgres fails, processBatch
// returns an error, and sent rows without marks are sent again.
func (r *run) processBatch(ctx context.Context, l *lease) (next string, err error) {
	begun := time.Now()
	// A batch is finished even when the run ends: an abandoned reply would be a row sent twice.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	rows, err := outbox.ClaimBatch(limited, r.relay.db, l.shard, l.cursor, batchSize, r.relay.now(), idleTxTimeout)
	cancel()
	if err != nil || rows == nil {
		return "", err
	}
	b := &batch{run: r, rows: rows, ctx: ctx, deadline: begun.Add(batchWindow), consent: consentState{readAt: begun}}
	b.send()
	limited, cancel = context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	m := &b.marks
	if len(m.Published)+len(m.Rejected)+len(m.OptedOut) == 0 {
		rows.Release(limited)
		l.blocked = l.blocked || b.blocked
		return rows.Next, nil
	}
	dropped, err := rows.Mark(limited, *m, r.relay.now())
	if err != nil {
		return "", err
	}
	r.counters.published.Add(int64(len(m.Published)))
	otlp.FromContext(ctx).AddPublished(ctx, int64(len(m.Published)))
	r.counters.rejected.Add(int64(len(m.Rejected)))
	r.counters.dropped.Add(dropped)
	l.progressed, l.blocked = true, l.blocked || b.blocked
	return rows.Next, nil
}

// send sends the sessions of the batch side by side, each in the order of ids. Rows without a
// session have no order and are grouped by topic, so that few requests suffice.
func (b *batch) send() {
	rows := b.rows.Rows
	sameGroup := func(x, y outbox.Pending) bool { return x.Session == y.Session }
	if len(rows) > 0 && rows[0].Session == "" {
		sameGroup = func(x, y outbox.Pending) bool { return x.Topic == y.Topic }
		slices.SortStableFunc(rows, func(x, y outbox.Pending) int { return strings.Compare(x.Topic, y.Topic) })
	}
	var sessions sync.WaitGroup
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && sameGroup(rows[n], rows[0]) {
			n++
		}
		group := rows[:n]
		rows = rows[n:]
		sessions.Go(func() { b.sendSession(group) })
	}
	sessions.Wait()
}

// sendSession splits the rows of a session into sequences of one topic, and sends a sequence after
// Pub/Sub has accepted the previous sequence. The first row without acceptance ends the session's
// turn.
func (b *batch) sendSession(rows []outbox.Pending) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Topic == rows[0].Topic && !rows[n].OptedOut {
			n++
		}
		if rows[0].OptedOut {
			b.mark(func(m *outbox.Marks) { m.OptedOut = append(m.OptedOut, rows[0].Session) })
			return // Mark deletes the session's rows; the next batch sends session.ended.v1
		}
		if !b.sendTopic(rows[:n]) {
			return
		}
		rows = rows[n:]
	}
}

// sendTopic sends rows with the same session and topic in requests of at most maxRequestSize, and
// reports whether Pub/Sub accepted all rows.
func (b *batch) sendTopic(rows []outbox.Pending) bool {
	for len(rows) > 0 {
		var messages []*pubsubpb.PubsubMessage
		var invalid error // the row after messages is no valid message
		size := 0
		for _, row := range rows {
			m, err := encodeMessage(row, b.run.relay.now())
			if invalid = err; err != nil {
				break
			}
			if size += len(m.Data) + len(row.Headers); size > maxRequestSize && len(messages) > 0 {
				break
			}
			messages = append(messages, m)
		}
		n := len(messages)
		if n > 0 && !b.publish(rows[:n], messages) {
			return false
		}
		if invalid != nil {
			b.reject(rows[n], invalid.Error())
			return false
		}
		rows = rows[n:]
	}
	return true
}

// publish sends messages in a single request and reports whether Pub/Sub accepted all messages.
// When Pub/Sub refuses several messages together, publish sends each message alone, in order, up to
// the refused message: only the row of this message is charged, and the later rows wait.
func (b *batch) publish(rows []outbox.Pending, messages []*pubsubpb.PubsubMessage) bool {
	err := b.publishOnce(rows, messages)
	if !isPermanent(err) {
		return err == nil
	}
	if len(rows) == 1 {
		b.reject(rows[0], status.Code(err).String()+": "+status.Convert(err).Message())
		return false
	}
	for i := range rows {
		if !b.publish(rows[i:i+1], messages[i:i+1]) {
			return false
		}
	}
	return true
}

// errNotSent is the error of publishOnce for rows left to a later batch.
var errNotSent = status.Error(codes.Canceled, "relay: not sent")

// publishOnce waits for a request slot and makes a request. It makes no request and returns
// errNotSent after the end of the run or of the batch's window, without the guest's consent, and
// while the topic's breaker is open.
func (b *batch) publishOnce(rows []outbox.Pending, messages []*pubsubpb.PubsubMessage) error {
	r, topic := b.run, rows[0].Topic
	r.requestSlots <- struct{}{}
	defer func() { <-r.requestSlots }()
	if b.ctx.Err() != nil || time.Now().After(b.deadline) {
		return errNotSent
	}
	if !b.hasConsent(rows[0].Session, topic) {
		return errNotSent
	}
	err := r.breakers.do(topic, func() error { return b.callBroker(topic, messages) })
	switch {
	case errors.Is(err, errBreakerOpen):
		b.mark(func(*outbox.Marks) { b.blocked = true })
		return errNotSent
	case err == nil:
		b.mark(func(m *outbox.Marks) {
			for _, row := range rows {
				m.Published = append(m.Published, row.ID)
			}
		})
	case !isPermanent(err):
		r.counters.addOutage(topic, status.Code(err))
		b.mark(func(*outbox.Marks) { b.blocked = true })
	}
	return err
}

// callBroker makes a request to Pub/Sub and waits up to 5 s for the reply, also when the run ends.
func (b *batch) callBroker(topic string, messages []*pubsubpb.PubsubMessage) error {
	r := b.run
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), requestTimeout)
	defer cancel()
	r.counters.requests.Add(1)
	r.counters.attempts.Add(int64(len(messages)))
	ctx, span := otlp.StartPublish(ctx, topic, len(messages))
	_, err := r.relay.broker.Publish(ctx, &pubsubpb.PublishRequest{
		Topic: "projects/" + r.relay.project + "/topics/" + topic, Messages: messages,
	})
	span.End(errorCode(err))
	return err
}

// isPermanent reports whether Pub/Sub will never accept the request: the row is charged. Every
// other failure is an outage and charges no row. Missing rights and quotas are outages too: the
// operator made a mistake, not the row.
func isPermanent(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return false
}

// errorCode returns the gRPC code of err, or "" for nil.
func errorCode(err error) string {
	if err == nil {
		return ""
	}
	return status.Code(err).String()
}

// reject charges a row with an attempt: the row gets a backoff, from 1 s doubling to 10 min, or is
// parked at the 20th attempt. Reason is cut to 300 bytes.
func (b *batch) reject(row outbox.Pending, reason string) {
	if len(reason) > maxErrorLength {
		reason = reason[:maxErrorLength]
	}
	attempt := row.Attempts + 1
	wait := min(minBackoff<<min(attempt-1, 20), maxBackoff)
	wait += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(wait)) // ± 20 %, so that retries spread
	rejection := outbox.Rejection{
		ID: row.ID, Reason: strings.ToValidUTF8(strings.ReplaceAll(reason, "\x00", ""), ""),
		Due: b.run.relay.now().Add(wait), Park: attempt >= maxAttempts,
	}
	b.mark(func(m *outbox.Marks) { m.Rejected = append(m.Rejected, rejection) })
}

// mark changes the marks of the batch under its lock.
func (b *batch) mark(change func(*outbox.Marks)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.marks)
}
