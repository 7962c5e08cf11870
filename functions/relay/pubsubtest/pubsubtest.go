// Package pubsubtest owns a broker that takes what is published, remembers it, and misbehaves as it is told: it
// refuses, loses its answers and hangs. Only tests, benchmarks and the soak use it. It delivers nothing to anybody.
package pubsubtest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Message is a message that the broker took.
type Message struct {
	Topic        string // without the project
	ID           string // the attribute eventId
	OrderingKey  string
	Attributes   map[string]string
	Data         []byte
	ReceivedAt   time.Time
	ResponseLost bool // the one who sent it was not told
}

// Request is one call of Publish.
type Request struct {
	Number      int // from 1
	Topic       string
	OrderingKey string
	Messages    []*pubsubpb.PubsubMessage
}

// Behavior is what the broker does with a request.
type Behavior struct {
	RejectCode   codes.Code    // other than OK: takes nothing and answers this
	LoseResponse bool          // takes it, and answers Unavailable
	Hang         bool          // takes nothing and answers nothing, until the caller gives up
	Gate         chan struct{} // waits until it is closed, and then takes it
}

// Broker is one that listens. It is safe for concurrent use.
type Broker struct {
	Addr string // for PUBSUB_EMULATOR_HOST

	pubsubpb.UnimplementedPublisherServer
	server *grpc.Server

	mu       sync.Mutex
	behavior func(Request) Behavior
	handler  func([]Message)
	messages []Message
	arrived  chan struct{} // closed at the next arrival
	requests int
}

// Start listens on a free port.
func Start() (*Broker, error) { return StartAt("127.0.0.1:0") }

// StartAt listens on an address, so that a broker may come back where another was.
func StartAt(addr string) (*Broker, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	b := &Broker{Addr: l.Addr().String(), server: grpc.NewServer(), arrived: make(chan struct{})}
	pubsubpb.RegisterPublisherServer(b.server, b)
	go b.server.Serve(l) // until Stop
	return b, nil
}

// Stop ends the broker at once; what it remembers stays.
func (b *Broker) Stop() { b.server.Stop() }

// SetBehavior makes the broker ask what to do with each request, one at a time; nil: it takes all.
func (b *Broker) SetBehavior(react func(Request) Behavior) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behavior = react
}

// SetHandler hands arrivals over, in order, instead of remembering them.
func (b *Broker) SetHandler(take func([]Message)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = take
}

// Messages is all that arrived so far, in order.
func (b *Broker) Messages() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages[:len(b.messages):len(b.messages)]
}

// Requests is how often Publish was called.
func (b *Broker) Requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// Await returns when so many messages have arrived, or ctx ends.
func (b *Broker) Await(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		enough, news := len(b.messages) >= n, b.arrived
		b.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Publish is what a broker does.
func (b *Broker) Publish(ctx context.Context, r *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	now := time.Now()
	_, topic, _ := strings.Cut(r.Topic, "/topics/")
	if len(r.Messages) == 0 || topic == "" {
		return nil, status.Error(codes.InvalidArgument, "no messages, or no topic")
	}
	key := r.Messages[0].OrderingKey
	for _, m := range r.Messages {
		if m.OrderingKey != key {
			return nil, status.Error(codes.InvalidArgument, "one request has one ordering key")
		}
	}
	b.mu.Lock()
	b.requests++
	number := b.requests
	var how Behavior
	if b.behavior != nil {
		how = b.behavior(Request{b.requests, topic, key, r.Messages})
	}
	b.mu.Unlock()
	switch {
	case how.RejectCode != codes.OK:
		return nil, status.Error(how.RejectCode, "as it was told")
	case how.Hang:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case how.Gate != nil:
		<-how.Gate
	}
	b.store(topic, r.Messages, now, how.LoseResponse)
	if how.LoseResponse {
		return nil, status.Error(codes.Unavailable, "taken, and not said")
	}
	ids := make([]string, len(r.Messages))
	for i := range ids {
		ids[i] = strconv.Itoa(number) + "-" + strconv.Itoa(i)
	}
	return &pubsubpb.PublishResponse{MessageIds: ids}, nil
}

func (b *Broker) store(topic string, messages []*pubsubpb.PubsubMessage, now time.Time, lost bool) {
	some := make([]Message, len(messages))
	for i, m := range messages {
		some[i] = Message{topic, m.Attributes["eventId"], m.OrderingKey, m.Attributes, m.Data, now, lost}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handler != nil {
		b.handler(some)
		return
	}
	b.messages = append(b.messages, some...)
	close(b.arrived)
	b.arrived = make(chan struct{})
}
