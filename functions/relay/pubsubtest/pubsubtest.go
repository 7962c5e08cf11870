// Package pubsubtest owns a fake Pub/Sub publisher service. The fake keeps published messages in
// memory and injects faults: refusals, lost responses and hanging requests. Only tests, benchmarks
// and the soak test import the package. It never delivers messages to subscribers.
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

// Message is an accepted message.
type Message struct {
	Topic        string // without the project
	ID           string // the attribute eventId
	OrderingKey  string
	Attributes   map[string]string
	Data         []byte
	ReceivedAt   time.Time
	ResponseLost bool // the publisher got Unavailable
}

// Request is a call of Publish.
type Request struct {
	Number      int // 1 for the first request
	Topic       string
	OrderingKey string
	Messages    []*pubsubpb.PubsubMessage
}

// Behavior is the broker's reaction to a request. The zero value accepts the messages.
type Behavior struct {
	RejectCode   codes.Code    // other than OK: accept no message and return this code
	LoseResponse bool          // accept the messages and return Unavailable
	Hang         bool          // accept no message and wait until the caller gives up
	Gate         chan struct{} // wait until the channel is closed, then accept the messages
}

// Broker is a listening fake. It is safe for concurrent use.
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

// Start listens on a free port of 127.0.0.1 until Stop. Start returns nil and the error of the
// listener if the process may not listen.
func Start() (*Broker, error) { return StartAt("127.0.0.1:0") }

// StartAt listens on an address, for example of a stopped broker, until Stop. The new broker has no
// messages. StartAt returns nil and the error of net.Listen, for example for an address in use. A
// goroutine serves until Stop.
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

// Stop closes the listener and all connections at once; requests under way get an error from gRPC.
// The kept messages stay readable. A second call does nothing.
func (b *Broker) Stop() { b.server.Stop() }

// SetBehavior sets the function that decides about each later valid request; nil accepts all. The
// broker calls the function for a single request at a time, under its lock: decide must not call
// the broker.
func (b *Broker) SetBehavior(decide func(Request) Behavior) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behavior = decide
}

// SetHandler passes later accepted messages to take, in order, instead of keeping the messages; nil
// keeps messages again. The broker calls take for one request at a time under its lock: take must
// not call the broker. Messages and Await ignore messages passed to take.
func (b *Broker) SetHandler(take func([]Message)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = take
}

// Messages returns the kept messages in the order of arrival, without copying: do not change the
// elements. Messages takes the broker's lock for a moment.
func (b *Broker) Messages() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages[:len(b.messages):len(b.messages)]
}

// Requests returns the number of valid calls of Publish, accepted or not. Requests takes the
// broker's lock for a moment.
func (b *Broker) Requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// Await waits until at least n messages are kept; messages passed to a handler do not count. Await
// returns the error of ctx when ctx ends first, also after Stop.
func (b *Broker) Await(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		enough, arrived := len(b.messages) >= n, b.arrived
		b.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Publish implements the gRPC service. Publish refuses a request without messages, without a topic
// or with several ordering keys with InvalidArgument, as Pub/Sub does, and does not count the
// request. For a valid request Publish takes the broker's lock for the behavior and again to keep
// the messages. The behavior may return another code, wait until ctx ends, or wait for the Gate,
// even beyond the end of ctx.
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
	var behavior Behavior
	if b.behavior != nil {
		behavior = b.behavior(Request{b.requests, topic, key, r.Messages})
	}
	b.mu.Unlock()
	switch {
	case behavior.RejectCode != codes.OK:
		return nil, status.Error(behavior.RejectCode, "rejected by the test")
	case behavior.Hang:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case behavior.Gate != nil:
		<-behavior.Gate
	}
	b.store(topic, r.Messages, now, behavior.LoseResponse)
	if behavior.LoseResponse {
		return nil, status.Error(codes.Unavailable, "response lost by the test")
	}
	ids := make([]string, len(r.Messages))
	for i := range ids {
		ids[i] = strconv.Itoa(number) + "-" + strconv.Itoa(i)
	}
	return &pubsubpb.PublishResponse{MessageIds: ids}, nil
}

// store keeps messages, or passes the messages to the handler.
func (b *Broker) store(topic string, messages []*pubsubpb.PubsubMessage, now time.Time, lost bool) {
	accepted := make([]Message, len(messages))
	for i, m := range messages {
		accepted[i] = Message{topic, m.Attributes["eventId"], m.OrderingKey, m.Attributes, m.Data, now, lost}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handler != nil {
		b.handler(accepted)
		return
	}
	b.messages = append(b.messages, accepted...)
	close(b.arrived)
	b.arrived = make(chan struct{})
}
