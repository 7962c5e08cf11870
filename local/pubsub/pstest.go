package pubsub

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
)

// pstestServer is pstest behind a door of our own. Two things are done at the door that pstest cannot: whoever pulls is told
// when there is something, and its memory is emptied from time to time, because it keeps every message for ever.
type pstestServer struct {
	pb.PublisherServer // pstest's

	addr string
	fake *pstest.Server
	grpc *grpc.Server
	done chan struct{} // the listener has ended

	isTracked func(messageID string) bool // messages whose fate the dispatcher has in hand
	purgeAt   int64                       // of messages in memory, before those that are done with are forgotten
	stored    atomic.Int64
	publishMu sync.RWMutex // a publish holds it for reading
	purges    sync.WaitGroup

	mu      sync.Mutex
	waiters map[string][]chan struct{} // by topic
}

const maxStoredMessages = 10_000

func startPstest() (*pstestServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fake := pstest.NewServerWithAddress("127.0.0.1:0") // its own listener is not used
	var clock monotonicClock
	fake.SetTimeNowFunc(clock.now)
	s := &pstestServer{
		PublisherServer: &fake.GServer,
		addr:            l.Addr().String(), fake: fake, done: make(chan struct{}),
		grpc:    grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestBytes)),
		purgeAt: maxStoredMessages,
		waiters: map[string][]chan struct{}{},
	}
	pb.RegisterPublisherServer(s.grpc, s)
	pb.RegisterSubscriberServer(s.grpc, &fake.GServer)
	go func() {
		defer close(s.done)
		if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			slog.Error("the broker's listener failed", "err", err.Error())
		}
	}()
	return s, nil
}

const maxRequestBytes = 20 << 20 // Pub/Sub takes 10 MB

func (s *pstestServer) stop() {
	s.grpc.Stop()
	<-s.done
	s.purges.Wait()
	s.fake.Close()
	s.fake.Wait()
}

// monotonicClock never gives the same time twice: pstest orders messages by it, and some machines count in microseconds.
type monotonicClock struct {
	mu   sync.Mutex
	last time.Time
}

func (c *monotonicClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !now.After(c.last) {
		now = c.last.Add(1)
	}
	c.last = now
	return now
}

// Publish is pstest's, and tells those who wait for messages of the topic.
func (s *pstestServer) Publish(ctx context.Context, req *pb.PublishRequest) (*pb.PublishResponse, error) {
	s.publishMu.RLock()
	res, err := s.PublisherServer.Publish(ctx, req)
	s.publishMu.RUnlock()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	for _, c := range s.waiters[req.Topic] {
		select {
		case c <- struct{}{}:
		default: // told already
		}
	}
	s.mu.Unlock()
	before := s.stored.Add(int64(len(req.Messages))) - int64(len(req.Messages))
	if before < s.purgeAt && before+int64(len(req.Messages)) >= s.purgeAt {
		s.purges.Go(s.purge)
	}
	return res, nil
}

// notify makes c receive when messages of a topic arrive. One signal may stand for many.
func (s *pstestServer) notify(topic string, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[topic] = append(s.waiters[topic], c)
}

const (
	purgeTimeout       = 100 * time.Millisecond
	purgeCheckInterval = 2 * time.Millisecond
)

// purge empties the memory at a moment when nobody needs anything of it. Publishers wait meanwhile. When that moment
// does not come, because somebody does not read a subscription, it is tried again after half as many messages.
func (s *pstestServer) purge() {
	s.publishMu.Lock()
	defer s.publishMu.Unlock()
	for begun := time.Now(); time.Since(begun) < purgeTimeout; time.Sleep(purgeCheckInterval) {
		if s.allAcknowledged() {
			s.fake.ClearMessages()
			s.stored.Store(0)
			return
		}
	}
	s.stored.Store(s.purgeAt / 2)
}

// allAcknowledged reports whether each message was acknowledged on every subscription of its topic, is in the dispatcher's
// hand, or is so old that pstest itself has given it up.
func (s *pstestServer) allAcknowledged() bool {
	readers := map[string]int{}
	for _, m := range s.fake.Messages() {
		if _, known := readers[m.Topic]; !known {
			res, err := s.fake.GServer.ListTopicSubscriptions(context.Background(),
				&pb.ListTopicSubscriptionsRequest{Topic: m.Topic, PageSize: 1000})
			if err != nil {
				return false
			}
			readers[m.Topic] = len(res.Subscriptions)
		}
		if m.Acks < readers[m.Topic] && time.Since(m.PublishTime) < messageExpiry && !s.isInFlight(m.ID) {
			return false
		}
	}
	return true
}

const messageExpiry = 11 * time.Minute // pstest drops what was not delivered for ten

func (s *pstestServer) isInFlight(id string) bool {
	s.mu.Lock()
	held := s.isTracked
	s.mu.Unlock()
	return held != nil && held(id)
}

// compareMessageIDs orders message ids of one broker by age: they are numbers, with a letter before them in pstest.
func compareMessageIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
