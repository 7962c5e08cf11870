// Package pubsub owns the Pub/Sub of the local system: the table of topics and subscriptions, the
// connection to the broker, the push dispatcher with attempts and dead letters, the collected
// telemetry, and the platform events that a developer publishes. The broker is pstest in this
// process, or an emulator. The package never decides by the content of a message how to deliver the
// message.
package pubsub

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// BrokerOptions select the broker.
type BrokerOptions struct {
	Host    string // "host:port" of a running emulator; "" starts pstest in this process
	Project string
}

// Broker is a connection to a Pub/Sub server with all topics and subscriptions of the table. It is
// safe for concurrent use.
type Broker struct {
	Host    string // "host:port", the value for PUBSUB_EMULATOR_HOST
	Project string

	pstest    *pstestServer // nil with an external emulator
	conn      *grpc.ClientConn
	pub       pb.PublisherClient
	sub       pb.SubscriberClient
	closeOnce sync.Once
}

// OpenBroker starts pstest unless o.Host names an emulator, and creates the missing topics and
// subscriptions of the table. It waits up to 10 s for a connection. It returns an error if the
// broker does not answer in that time, or if ctx ends; then nothing is left running.
func OpenBroker(ctx context.Context, o BrokerOptions) (_ *Broker, err error) {
	b := &Broker{Host: o.Host, Project: o.Project}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.Host == "" {
		if b.pstest, err = startPstest(); err != nil {
			return nil, fmt.Errorf("pubsub: %w", err)
		}
		b.Host = b.pstest.addr
	}
	b.conn, err = grpc.NewClient(b.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	b.pub, b.sub = pb.NewPublisherClient(b.conn), pb.NewSubscriberClient(b.conn)
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := b.create(ctx, allSubscriptions()); err != nil {
		return nil, fmt.Errorf("pubsub: create subscriptions at %s: %w", b.Host, err)
	}
	return b, nil
}

const openTimeout = 10 * time.Second

// Close closes the connection and stops a pstest started by OpenBroker; its messages are lost.
// Close may be called repeatedly, and also on a partly opened Broker.
func (b *Broker) Close() {
	b.closeOnce.Do(func() {
		if b.conn != nil {
			b.conn.Close()
		}
		if b.pstest != nil {
			b.pstest.stop()
		}
	})
}

// Ping reads one topic of the table, in one call to the broker. It returns an error if the broker
// does not answer before ctx ends.
func (b *Broker) Ping(ctx context.Context) error {
	_, err := b.pub.GetTopic(ctx, &pb.GetTopicRequest{Topic: b.topic(jobSubscriptions[0].Topic)})
	return err
}

// create creates topics and subscriptions, at most 8 at once. Existing topics and subscriptions
// stay unchanged.
func (b *Broker) create(ctx context.Context, table []Subscription) error {
	ignoreExisting := func(err error) error {
		if status.Code(err) == codes.AlreadyExists {
			return nil
		}
		return err
	}
	topics, within := errgroup.WithContext(ctx)
	topics.SetLimit(8)
	for _, s := range table {
		topics.Go(func() error {
			_, err := b.pub.CreateTopic(within, &pb.Topic{Name: b.topic(s.Topic)}, grpc.WaitForReady(true))
			return ignoreExisting(err)
		})
	}
	if err := topics.Wait(); err != nil {
		return err
	}
	subscriptions, within := errgroup.WithContext(ctx)
	subscriptions.SetLimit(8)
	for _, s := range table {
		subscriptions.Go(func() error {
			// No push configuration and no dead-letter policy: the emulators store push
			// configurations without pushing, and handle dead letters wrongly. See Dispatcher.
			_, err := b.sub.CreateSubscription(within, &pb.Subscription{
				Name: b.subscription(s.Name), Topic: b.topic(s.Topic),
				AckDeadlineSeconds: int32(s.AckDeadline / time.Second), EnableMessageOrdering: s.Ordered,
			})
			return ignoreExisting(err)
		})
	}
	return subscriptions.Wait()
}

func (b *Broker) topic(name string) string { return "projects/" + b.Project + "/topics/" + name }
func (b *Broker) subscription(name string) string {
	return "projects/" + b.Project + "/subscriptions/" + name
}

// Publish publishes a message and returns its message id, in one call to the broker. It returns an
// error if the broker rejects the message, does not answer before ctx ends or has no such topic.
func (b *Broker) Publish(ctx context.Context, topic string, data []byte, attributes map[string]string) (id string, err error) {
	return b.publish(ctx, topic, &pb.PubsubMessage{Data: data, Attributes: attributes})
}

func (b *Broker) publish(ctx context.Context, topic string, m *pb.PubsubMessage) (id string, err error) {
	res, err := b.pub.Publish(ctx, &pb.PublishRequest{Topic: b.topic(topic), Messages: []*pb.PubsubMessage{m}})
	if err != nil {
		return "", fmt.Errorf("pubsub: publish on %s: %w", topic, err)
	}
	return res.MessageIds[0], nil
}

// pull returns up to most messages, at most 1,000. Without messages it returns at once; with wait
// set, the emulator delays an empty response by a short time of its own choice.
func (b *Broker) pull(ctx context.Context, s Subscription, most int, wait bool) ([]*pb.ReceivedMessage, error) {
	res, err := b.sub.Pull(ctx, &pb.PullRequest{
		Subscription: b.subscription(s.Name), MaxMessages: int32(min(most, 1000)),
		// nolint:staticcheck // deprecated for its cost on the platform; an emulator has no such
		// cost
		ReturnImmediately: !wait,
	})
	return res.GetReceivedMessages(), err
}

// ack acknowledges messages by their acknowledgement ids. It makes no call for an empty list.
func (b *Broker) ack(ctx context.Context, s Subscription, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := b.sub.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: b.subscription(s.Name), AckIds: ids})
	return err
}

// modifyAckDeadline extends the lease of a message to d from now, at most 600 s and rounded up to
// whole seconds. 0 makes the message available to other readers at once.
func (b *Broker) modifyAckDeadline(ctx context.Context, s Subscription, id string, d time.Duration) error {
	seconds := int32(math.Ceil(min(d, maxAckDeadline).Seconds()))
	_, err := b.sub.ModifyAckDeadline(ctx, &pb.ModifyAckDeadlineRequest{
		Subscription: b.subscription(s.Name), AckIds: []string{id}, AckDeadlineSeconds: seconds,
	})
	return err
}

const maxAckDeadline = 600 * time.Second // Pub/Sub's own limit
