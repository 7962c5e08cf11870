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

// pstestServer is pstest behind a gRPC server of this package. The server adds two features: it
// signals readers when a message arrives, and it purges pstest, which otherwise keeps every message
// for ever.
type pstestServer struct {
	pb.PublisherServer // of pstest; Publish overrides one method

	addr string
	fake *pstest.Server
	grpc *grpc.Server
	done chan struct{} // closed when the gRPC server has ended

	isTracked func(messageID string) bool // reports messages in flight in the dispatcher; guarded by mu
	purgeAt   int64                       // number of stored messages that triggers a purge
	stored    atomic.Int64                // messages since the last purge
	publishMu sync.RWMutex                // Publish holds the read lock, purge the write lock
	purges    sync.WaitGroup

	mu      sync.Mutex
	waiters map[string][]chan struct{} // by topic
}

const maxStoredMessages = 10_000

// startPstest starts pstest on a free port of 127.0.0.1. It returns an error if no port is free.
func startPstest() (*pstestServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fake := pstest.NewServerWithAddress("127.0.0.1:0") // the listener of pstest stays unused
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
			slog.Error("pubsub: the listener of pstest failed", "err", err.Error())
		}
	}()
	return s, nil
}

const maxRequestBytes = 20 << 20 // above the 10 MB limit of Pub/Sub

// stop ends the server and all its goroutines.
func (s *pstestServer) stop() {
	s.grpc.Stop()
	<-s.done
	s.purges.Wait()
	s.fake.Close()
	s.fake.Wait()
}

// monotonicClock returns strictly increasing times. pstest orders messages by time, and the clock
// of some machines has a resolution of microseconds only.
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

// Publish publishes in pstest and signals the readers of the topic. It starts a purge when the
// number of stored messages reaches purgeAt.
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
		default: // a signal is pending
		}
	}
	s.mu.Unlock()
	before := s.stored.Add(int64(len(req.Messages))) - int64(len(req.Messages))
	if before < s.purgeAt && before+int64(len(req.Messages)) >= s.purgeAt {
		s.purges.Go(s.purge)
	}
	return res, nil
}

// notify registers c for a signal when messages of a topic arrive. One signal may stand for many
// messages. c needs a buffer of 1.
func (s *pstestServer) notify(topic string, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[topic] = append(s.waiters[topic], c)
}

const (
	purgeTimeout       = 100 * time.Millisecond
	purgeCheckInterval = 2 * time.Millisecond
)

// purge deletes all messages of pstest once all are acknowledged. Publishers wait meanwhile, at
// most purgeTimeout. If a message stays unacknowledged, for example on a subscription without a
// reader, the next attempt comes after purgeAt/2 further messages.
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

// allAcknowledged reports whether pstest needs no message any more: each message is acknowledged on
// every subscription of its topic, in flight in the dispatcher, or older than messageExpiry.
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

const messageExpiry = 11 * time.Minute // pstest drops undelivered messages after ten minutes

func (s *pstestServer) isInFlight(id string) bool {
	s.mu.Lock()
	isTracked := s.isTracked
	s.mu.Unlock()
	return isTracked != nil && isTracked(id)
}

// compareMessageIDs orders the message ids of a broker by age. The ids are numbers, with a letter
// as prefix in pstest.
func compareMessageIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
