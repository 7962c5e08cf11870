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
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

const (
	requestWithin = 5 * time.Second
	// batchWithin is how long requests of one batch are begun; then what is left of it is left to the next one.
	batchWithin = 10 * time.Second
	// idleWithin ends the transaction of a relay that is not heard of any more. The longest silence of one that lives
	// is a request that began last.
	idleWithin   = batchWithin + requestWithin + 5*time.Second
	parkAfter    = 20 // refusals
	firstBackoff = time.Second
	mostBackoff  = 10 * time.Minute
	whyMost      = 300 // bytes of last_error
	// largestRow is a bit less than the 10 MB that Pub/Sub takes in one request, for what is around the messages in it.
	largestRow = 10_000_000 - 100_000
	// sizeAtOnce is how many bytes of rows go in one request, unless it is one row: what is not Pub/Sub may take 4 MiB.
	sizeAtOnce = 3 << 20
)

// askedLately is how old the answer may be that a guest did not refuse, when a request begins.
var askedLately = 2 * time.Millisecond // changed by tests

// batch is some rows of a lane on their way out.
type batch struct {
	shift *shift
	rows  *outbox.Batch
	until time.Time // no request begins after it
	ctx   context.Context

	mu    sync.Mutex
	marks outbox.Marks
	stuck bool

	asking  sync.Mutex // of Postgres; also guards what is below
	asked   time.Time
	choices map[string]*outbox.Choice // of those who refused or cleared
	lost    bool                      // Postgres has no answer, so nothing could be marked: nothing more is sent
}

// batch takes, sends and marks some rows. It returns where the next batch begins; "" is the lane's end.
func (s *shift) batch(ctx context.Context, v *visit) (next string, err error) {
	begun := time.Now()
	// What is begun is finished, also when the run is over: an answer that nobody waits for is a row sent twice.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
	rows, err := outbox.Take(within, s.relay.db, v.lane, v.after, rowsAtOnce, s.relay.now(), idleWithin)
	cancel()
	if err != nil || rows == nil {
		return "", err
	}
	b := &batch{shift: s, rows: rows, ctx: ctx, until: begun.Add(batchWithin), asked: begun}
	b.send()
	within, cancel = context.WithTimeout(context.WithoutCancel(ctx), markWithin)
	defer cancel()
	m := &b.marks
	if len(m.Published)+len(m.Refused)+len(m.Silent) == 0 {
		rows.Release(within)
		v.stuck = v.stuck || b.stuck
		return rows.Next, nil
	}
	dropped, err := rows.Mark(within, *m, s.relay.now())
	if err != nil {
		return "", err
	}
	s.did.published.Add(int64(len(m.Published)))
	telemetry.From(ctx).Published(ctx, int64(len(m.Published)))
	s.did.refused.Add(int64(len(m.Refused)))
	s.did.dropped.Add(dropped)
	v.moved, v.stuck = true, v.stuck || b.stuck
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
		all.Go(func() { b.session(some) })
	}
	all.Wait()
}

// session sends rows in runs of one topic, each after the broker took the one before. It ends at the first that is not
// sent.
func (b *batch) session(rows []outbox.Pending) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Topic == rows[0].Topic && !rows[n].Silent {
			n++
		}
		if rows[0].Silent {
			b.mark(func(m *outbox.Marks) { m.Silent = append(m.Silent, rows[0].Session) })
			return // what the guest may still be told of, their end, is the next batch's
		}
		if !b.topic(rows[:n]) {
			return
		}
		rows = rows[n:]
	}
}

// topic sends a run of rows of one session and one topic, in as many requests as their sizes need, and reports that the
// broker took all of them.
func (b *batch) topic(rows []outbox.Pending) bool {
	for len(rows) > 0 {
		var messages []*pubsubpb.PubsubMessage
		var broken error
		size := 0
		for _, row := range rows {
			m, err := encode(row, b.shift.relay.now())
			if broken = err; err != nil {
				break
			}
			if size += len(m.Data) + len(row.Headers); size > sizeAtOnce && len(messages) > 0 {
				break
			}
			messages = append(messages, m)
		}
		n := len(messages)
		if n > 0 && !b.publish(rows[:n], messages) {
			return false
		}
		if broken != nil {
			b.refuse(rows[n], broken.Error())
			return false
		}
		rows = rows[n:]
	}
	return true
}

// publish sends messages in one request. When the broker refuses them together it sends them one by one, so that only
// the one that is to blame is charged; those behind it wait for it.
func (b *batch) publish(rows []outbox.Pending, messages []*pubsubpb.PubsubMessage) bool {
	err := b.request(rows, messages)
	if !permanent(err) {
		return err == nil
	}
	if len(rows) == 1 {
		b.refuse(rows[0], status.Code(err).String()+": "+status.Convert(err).Message())
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

// request is one call of the broker, if it is to be made at all.
func (b *batch) request(rows []outbox.Pending, messages []*pubsubpb.PubsubMessage) error {
	s, topic := b.shift, rows[0].Topic
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	if b.ctx.Err() != nil || time.Now().After(b.until) {
		return errNotSent
	}
	if !b.mayBeTold(rows[0].Session, topic) {
		return errNotSent
	}
	turn, ok := s.sky.allow(topic)
	if !ok {
		b.mark(func(*outbox.Marks) { b.stuck = true })
		return errNotSent
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), requestWithin)
	defer cancel()
	s.did.requests.Add(1)
	s.did.attempts.Add(int64(len(rows)))
	ctx, part := telemetry.Publish(ctx, topic, len(messages))
	_, err := s.relay.broker.Publish(ctx, &pubsubpb.PublishRequest{
		Topic: "projects/" + s.relay.project + "/topics/" + topic, Messages: messages,
	})
	part.End(failure(err))
	if err == nil {
		b.mark(func(m *outbox.Marks) {
			for _, row := range rows {
				m.Published = append(m.Published, row.ID)
			}
		})
	}
	if err == nil || permanent(err) {
		s.sky.answered(topic)
		return err
	}
	s.sky.failed(topic, turn)
	s.did.outage(topic, status.Code(err))
	b.mark(func(*outbox.Marks) { b.stuck = true })
	return err
}

// failure is the code of the broker's answer, or "".
func failure(err error) string {
	if err == nil {
		return ""
	}
	return status.Code(err).String()
}

// mayBeTold reports that the guest of a session has not refused, as far as was known a moment ago. From the commit of a
// refusal on at most that moment passes until no request with rows of theirs begins.
func (b *batch) mayBeTold(session, topic string) bool {
	if session == "" {
		return true
	}
	b.asking.Lock()
	defer b.asking.Unlock()
	if now := time.Now(); !b.lost && now.Sub(b.asked) > askedLately {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), askWithin)
		defer cancel()
		var sessions []string
		for _, row := range b.rows.Rows {
			sessions = append(sessions, row.Session)
		}
		choices, err := b.rows.Choices(ctx, slices.Compact(sessions))
		b.asked, b.choices, b.lost = now, choices, err != nil
	}
	if b.lost || b.choices[session].Silences(topic) {
		if !b.lost {
			b.mark(func(m *outbox.Marks) { m.Silent = append(m.Silent, session) })
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

// refuse charges a row.
func (b *batch) refuse(row outbox.Pending, why string) {
	if len(why) > whyMost {
		why = why[:whyMost]
	}
	attempt := row.Attempts + 1
	wait := min(firstBackoff<<min(attempt-1, 20), mostBackoff)
	wait += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(wait)) // a fifth more or less, so that they do not come together
	r := outbox.Refusal{
		ID: row.ID, Why: strings.ToValidUTF8(strings.ReplaceAll(why, "\x00", ""), ""),
		Due: b.shift.relay.now().Add(wait), Park: attempt >= parkAfter,
	}
	b.mark(func(m *outbox.Marks) { m.Refused = append(m.Refused, r) })
}

// permanent reports that the broker will never take what it was sent. Everything else that is not an answer is an
// outage, lack of a right or of a quota included: that is somebody's mistake and not the row's, and costs it nothing.
func permanent(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return false
}

// encode makes the message of a row. Its error repeats nothing of it.
func encode(row outbox.Pending, now time.Time) (*pubsubpb.PubsubMessage, error) {
	data, err := event.Published([]byte(row.Payload), row.ID, now)
	if err != nil {
		return nil, err
	}
	var attributes map[string]string
	if json.Unmarshal([]byte(row.Headers), &attributes) != nil {
		return nil, errors.New("relay: the headers are not an object of strings")
	}
	delete(attributes, "orderingKey")
	if size := len(data) + len(row.Headers); size > largestRow {
		return nil, fmt.Errorf("relay: %d bytes are more than a message may have", size)
	}
	return &pubsubpb.PubsubMessage{Data: data, Attributes: attributes, OrderingKey: row.Session}, nil
}
