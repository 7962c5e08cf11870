package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	requestTimeout = 5 * time.Second
	// batchWindow is how long requests of one batch are begun; then what is left of it is left to the next one.
	batchWindow = 10 * time.Second
	// idleTxTimeout ends the transaction of a relay that is not heard of any more. The longest silence of one that lives
	// is a request that began last.
	idleTxTimeout  = batchWindow + requestTimeout + 5*time.Second
	maxAttempts    = 20 // refusals
	minBackoff     = time.Second
	maxBackoff     = 10 * time.Minute
	maxErrorLength = 300 // bytes of last_error
	// maxMessageSize is a bit less than the 10 MB that Pub/Sub takes in one request, for what is around the messages in it.
	maxMessageSize = 10_000_000 - 100_000
	// maxRequestSize is how many bytes of rows go in one request, unless it is one row: what is not Pub/Sub may take 4 MiB.
	maxRequestSize = 3 << 20
)

// consentMaxAge is how old the answer may be that a guest did not refuse, when a request begins.
var consentMaxAge = 2 * time.Millisecond // changed by tests

// batch is some rows of a lane on their way out.
type batch struct {
	run      *run
	rows     *outbox.Batch
	deadline time.Time // no request begins after it
	ctx      context.Context

	mu      sync.Mutex
	marks   outbox.Marks
	blocked bool

	consentMu      sync.Mutex // of Postgres; also guards what is below
	consentsReadAt time.Time
	consents       map[string]*outbox.Consent // of those who refused or cleared
	consentUnknown bool                       // Postgres has no answer, so nothing could be marked: nothing more is sent
}

// processBatch takes, sends and marks some rows. It returns where the next batch begins; "" is the lane's end.
func (s *run) processBatch(ctx context.Context, v *lease) (next string, err error) {
	begun := time.Now()
	// What is begun is finished, also when the run is over: an answer that nobody waits for is a row sent twice.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	rows, err := outbox.ClaimBatch(within, s.relay.db, v.shard, v.cursor, batchSize, s.relay.now(), idleTxTimeout)
	cancel()
	if err != nil || rows == nil {
		return "", err
	}
	b := &batch{run: s, rows: rows, ctx: ctx, deadline: begun.Add(batchWindow), consentsReadAt: begun}
	b.send()
	within, cancel = context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	m := &b.marks
	if len(m.Published)+len(m.Rejected)+len(m.OptedOut) == 0 {
		rows.Release(within)
		v.blocked = v.blocked || b.blocked
		return rows.Next, nil
	}
	dropped, err := rows.Mark(within, *m, s.relay.now())
	if err != nil {
		return "", err
	}
	s.counters.published.Add(int64(len(m.Published)))
	otlp.FromContext(ctx).AddPublished(ctx, int64(len(m.Published)))
	s.counters.rejected.Add(int64(len(m.Rejected)))
	s.counters.dropped.Add(dropped)
	v.progressed, v.blocked = true, v.blocked || b.blocked
	return rows.Next, nil
}

// send lets the sessions of the batch go side by side, each in its order. Rows of no session have none, but for what
// one request takes: they go by topic.
func (b *batch) send() {
	rows := b.rows.Rows
	same := func(r, of outbox.Pending) bool { return r.Session == of.Session }
	if len(rows) > 0 && rows[0].Session == "" {
		same = func(r, of outbox.Pending) bool { return r.Topic == of.Topic }
		slices.SortStableFunc(rows, func(a, b outbox.Pending) int { return strings.Compare(a.Topic, b.Topic) })
	}
	var all sync.WaitGroup
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && same(rows[n], rows[0]) {
			n++
		}
		some := rows[:n]
		rows = rows[n:]
		all.Go(func() { b.sendSession(some) })
	}
	all.Wait()
}

// sendSession sends rows in runs of one topic, each after the broker took the one before. It ends at the first that is not
// sent.
func (b *batch) sendSession(rows []outbox.Pending) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Topic == rows[0].Topic && !rows[n].OptedOut {
			n++
		}
		if rows[0].OptedOut {
			b.mark(func(m *outbox.Marks) { m.OptedOut = append(m.OptedOut, rows[0].Session) })
			return // what the guest may still be told of, their end, is the next batch's
		}
		if !b.sendTopic(rows[:n]) {
			return
		}
		rows = rows[n:]
	}
}

// sendTopic sends a run of rows of one session and one topic, in as many requests as their sizes need, and reports that the
// broker took all of them.
func (b *batch) sendTopic(rows []outbox.Pending) bool {
	for len(rows) > 0 {
		var messages []*pubsubpb.PubsubMessage
		var broken error
		size := 0
		for _, row := range rows {
			m, err := encodeMessage(row, b.run.relay.now())
			if broken = err; err != nil {
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
		if broken != nil {
			b.reject(rows[n], broken.Error())
			return false
		}
		rows = rows[n:]
	}
	return true
}

// publish sends messages in one request. When the broker refuses them together it sends them one by one, so that only
// the one that is to blame is charged; those behind it wait for it.
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

// errNotSent is what request returns for rows that are left to a later batch.
var errNotSent = status.Error(codes.Canceled, "relay: not sent")

// publishOnce is one call of the broker, if it is to be made at all.
func (b *batch) publishOnce(rows []outbox.Pending, messages []*pubsubpb.PubsubMessage) error {
	s, topic := b.run, rows[0].Topic
	s.requestSlots <- struct{}{}
	defer func() { <-s.requestSlots }()
	if b.ctx.Err() != nil || time.Now().After(b.deadline) {
		return errNotSent
	}
	if !b.hasConsent(rows[0].Session, topic) {
		return errNotSent
	}
	err := s.breakers.do(topic, func() error { return b.callBroker(topic, messages) })
	if errors.Is(err, errBreakerOpen) {
		b.mark(func(*outbox.Marks) { b.blocked = true })
		return errNotSent
	}
	if err == nil {
		b.mark(func(m *outbox.Marks) {
			for _, row := range rows {
				m.Published = append(m.Published, row.ID)
			}
		})
	}
	if err != nil && !isPermanent(err) {
		s.counters.addOutage(topic, status.Code(err))
		b.mark(func(*outbox.Marks) { b.blocked = true })
	}
	return err
}

// callBroker makes one request to the broker.
func (b *batch) callBroker(topic string, messages []*pubsubpb.PubsubMessage) error {
	s := b.run
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), requestTimeout)
	defer cancel()
	s.counters.requests.Add(1)
	s.counters.attempts.Add(int64(len(messages)))
	ctx, span := otlp.StartPublish(ctx, topic, len(messages))
	_, err := s.relay.broker.Publish(ctx, &pubsubpb.PublishRequest{
		Topic: "projects/" + s.relay.project + "/topics/" + topic, Messages: messages,
	})
	span.End(errorCode(err))
	return err
}

// errorCode is the code of the broker's answer, or "".
func errorCode(err error) string {
	if err == nil {
		return ""
	}
	return status.Code(err).String()
}

// hasConsent reports that the guest of a session has not refused, as far as was known a moment ago. From the commit of a
// refusal on at most that moment passes until no request with rows of theirs begins.
func (b *batch) hasConsent(session, topic string) bool {
	if session == "" {
		return true
	}
	b.consentMu.Lock()
	defer b.consentMu.Unlock()
	if now := time.Now(); !b.consentUnknown && now.Sub(b.consentsReadAt) > consentMaxAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), queryTimeout)
		defer cancel()
		var sessions []string
		for _, row := range b.rows.Rows {
			sessions = append(sessions, row.Session)
		}
		choices, err := b.rows.Consents(ctx, slices.Compact(sessions))
		b.consentsReadAt, b.consents, b.consentUnknown = now, choices, err != nil
	}
	if b.consentUnknown || b.consents[session].Blocks(topic) {
		if !b.consentUnknown {
			b.mark(func(m *outbox.Marks) { m.OptedOut = append(m.OptedOut, session) })
		}
		return false
	}
	return true
}

func (b *batch) mark(change func(*outbox.Marks)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.marks)
}

// reject charges a row.
func (b *batch) reject(row outbox.Pending, why string) {
	if len(why) > maxErrorLength {
		why = why[:maxErrorLength]
	}
	attempt := row.Attempts + 1
	wait := min(minBackoff<<min(attempt-1, 20), maxBackoff)
	wait += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(wait)) // a fifth more or less, so that they do not come together
	r := outbox.Rejection{
		ID: row.ID, Reason: strings.ToValidUTF8(strings.ReplaceAll(why, "\x00", ""), ""),
		Due: b.run.relay.now().Add(wait), Park: attempt >= maxAttempts,
	}
	b.mark(func(m *outbox.Marks) { m.Rejected = append(m.Rejected, r) })
}

// isPermanent reports that the broker will never take what it was sent. Everything else that is not an answer is an
// outage, lack of a right or of a quota included: that is somebody's mistake and not the row's, and costs it nothing.
func isPermanent(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return false
}

// encodeMessage makes the message of a row. Its error repeats nothing of it.
func encodeMessage(row outbox.Pending, now time.Time) (*pubsubpb.PubsubMessage, error) {
	data, err := event.WithPublishedAt([]byte(row.Payload), row.ID, now)
	if err != nil {
		return nil, err
	}
	var attributes map[string]string
	if json.Unmarshal([]byte(row.Headers), &attributes) != nil {
		return nil, errors.New("relay: the headers are not an object of strings")
	}
	delete(attributes, "orderingKey")
	if size := len(data) + len(row.Headers); size > maxMessageSize {
		return nil, fmt.Errorf("relay: %d bytes are more than a message may have", size)
	}
	return &pubsubpb.PubsubMessage{Data: data, Attributes: attributes, OrderingKey: row.Session}, nil
}
