package broker

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

// server is pstest behind a door of our own. Two things are done at the door that pstest cannot: whoever pulls is told
// when there is something, and its memory is emptied from time to time, because it keeps every message for ever.
type server struct {
	pb.PublisherServer // pstest's

	addr string
	fake *pstest.Server
	grpc *grpc.Server
	done chan struct{} // the listener has ended

	held   func(messageID string) bool // messages whose fate the dispatcher has in hand
	limit  int64                       // of messages in memory, before those that are done with are forgotten
	kept   atomic.Int64
	gate   sync.RWMutex // a publish holds it for reading
	sweeps sync.WaitGroup

	mu      sync.Mutex
	arrived map[string][]chan struct{} // by topic
}

const keptMessages = 10_000

func serve() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fake := pstest.NewServerWithAddress("127.0.0.1:0") // its own listener is not used
	var clock clock
	fake.SetTimeNowFunc(clock.now)
	s := &server{
		PublisherServer: &fake.GServer,
		addr:            l.Addr().String(), fake: fake, done: make(chan struct{}),
		grpc:    grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest)),
		limit:   keptMessages,
		arrived: map[string][]chan struct{}{},
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

const maxRequest = 20 << 20 // Pub/Sub takes 10 MB

func (s *server) stop() {
	s.grpc.Stop()
	<-s.done
	s.sweeps.Wait()
	s.fake.Close()
	s.fake.Wait()
}

// clock never gives the same time twice: pstest orders messages by it, and some machines count in microseconds.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

func (c *clock) now() time.Time {
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
func (s *server) Publish(ctx context.Context, req *pb.PublishRequest) (*pb.PublishResponse, error) {
	s.gate.RLock()
	res, err := s.PublisherServer.Publish(ctx, req)
	s.gate.RUnlock()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	for _, c := range s.arrived[req.Topic] {
		select {
		case c <- struct{}{}:
		default: // told already
		}
	}
	s.mu.Unlock()
	before := s.kept.Add(int64(len(req.Messages))) - int64(len(req.Messages))
	if before < s.limit && before+int64(len(req.Messages)) >= s.limit {
		s.sweeps.Go(s.forget)
	}
	return res, nil
}

// tell makes c receive when messages of a topic arrive. One signal may stand for many.
func (s *server) tell(topic string, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived[topic] = append(s.arrived[topic], c)
}

const (
	settleWithin = 100 * time.Millisecond
	settleEvery  = 2 * time.Millisecond
)

// forget empties the memory at a moment when nobody needs anything of it. Publishers wait meanwhile. When that moment
// does not come, because somebody does not read a subscription, it is tried again after half as many messages.
func (s *server) forget() {
	s.gate.Lock()
	defer s.gate.Unlock()
	for begun := time.Now(); time.Since(begun) < settleWithin; time.Sleep(settleEvery) {
		if s.settled() {
			s.fake.ClearMessages()
			s.kept.Store(0)
			return
		}
	}
	s.kept.Store(s.limit / 2)
}

// settled reports whether each message was acknowledged on every subscription of its topic, is in the dispatcher's
// hand, or is so old that pstest itself has given it up.
func (s *server) settled() bool {
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
		if m.Acks < readers[m.Topic] && time.Since(m.PublishTime) < givenUp && !s.isHeld(m.ID) {
			return false
		}
	}
	return true
}

const givenUp = 11 * time.Minute // pstest drops what was not delivered for ten

func (s *server) isHeld(id string) bool {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	return held != nil && held(id)
}

// older orders message ids of one broker by age: they are numbers, with a letter before them in pstest.
func older(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
