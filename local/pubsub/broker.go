// Package broker owns the Pub/Sub of the local system: its topics and subscriptions, the pushes to the functions with
// their attempts and dead letters, and the telemetry that arrived. The broker itself is pstest in this process, or the
// emulator that the environment names. It never looks into a message.
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

// BrokerOptions say which broker it is.
type BrokerOptions struct {
	Host    string // of an emulator that runs, "host:port"; "": one in this process
	Project string
}

// Broker is a connection to a Pub/Sub that has all topics and subscriptions of the table. It is safe for concurrent
// use.
type Broker struct {
	Host    string // for PUBSUB_EMULATOR_HOST
	Project string

	pstest    *pstestServer // nil when the emulator is somebody else's
	conn      *grpc.ClientConn
	pub       pb.PublisherClient
	sub       pb.SubscriberClient
	closeOnce sync.Once
}

// OpenBroker starts the broker, unless there is one, and creates what of the table it does not have yet.
func OpenBroker(ctx context.Context, o BrokerOptions) (_ *Broker, err error) {
	b := &Broker{Host: o.Host, Project: o.Project}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.Host == "" {
		if b.pstest, err = startPstest(); err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
		b.Host = b.pstest.addr
	}
	b.conn, err = grpc.NewClient(b.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.pub, b.sub = pb.NewPublisherClient(b.conn), pb.NewSubscriberClient(b.conn)
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := b.create(ctx, allSubscriptions()); err != nil {
		return nil, fmt.Errorf("broker: at %s: %w", b.Host, err)
	}
	return b, nil
}

const openTimeout = 10 * time.Second

// Close ends the connection, and the broker when it is ours; what was in it is gone. A broker that was not opened whole
// can be closed too, and one that is closed.
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

// Ping asks for a topic of the table.
func (b *Broker) Ping(ctx context.Context) error {
	_, err := b.pub.GetTopic(ctx, &pb.GetTopicRequest{Topic: b.topic(jobSubscriptions[0].Topic)})
	return err
}

// create makes topics and subscriptions; those that are there already stay as they are.
func (b *Broker) create(ctx context.Context, table []Subscription) error {
	made := func(err error) error {
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
			return made(err)
		})
	}
	if err := topics.Wait(); err != nil {
		return err
	}
	subscriptions, within := errgroup.WithContext(ctx)
	subscriptions.SetLimit(8)
	for _, s := range table {
		subscriptions.Go(func() error {
			// Neither push configuration nor dead-letter policy: the emulators would store the one and do the other
			// wrong.
			_, err := b.sub.CreateSubscription(within, &pb.Subscription{
				Name: b.subscription(s.Name), Topic: b.topic(s.Topic),
				AckDeadlineSeconds: int32(s.AckDeadline / time.Second), EnableMessageOrdering: s.Ordered,
			})
			return made(err)
		})
	}
	return subscriptions.Wait()
}

func (b *Broker) topic(name string) string { return "projects/" + b.Project + "/topics/" + name }
func (b *Broker) subscription(name string) string {
	return "projects/" + b.Project + "/subscriptions/" + name
}

// Publish puts one message on a topic and returns the id that it has from now on.
func (b *Broker) Publish(ctx context.Context, topic string, data []byte, attributes map[string]string) (id string, err error) {
	return b.publish(ctx, topic, &pb.PubsubMessage{Data: data, Attributes: attributes})
}

func (b *Broker) publish(ctx context.Context, topic string, m *pb.PubsubMessage) (id string, err error) {
	res, err := b.pub.Publish(ctx, &pb.PublishRequest{Topic: b.topic(topic), Messages: []*pb.PubsubMessage{m}})
	if err != nil {
		return "", fmt.Errorf("broker: publish on %s: %w", topic, err)
	}
	return res.MessageIds[0], nil
}

// pull takes what is there, at most 1,000 messages. When there is none it returns none at once, unless wait: then it
// waits as long as the emulator has it, which is not long.
func (b *Broker) pull(ctx context.Context, s Subscription, most int, wait bool) ([]*pb.ReceivedMessage, error) {
	res, err := b.sub.Pull(ctx, &pb.PullRequest{
		Subscription: b.subscription(s.Name), MaxMessages: int32(min(most, 1000)),
		ReturnImmediately: !wait, //nolint:staticcheck // deprecated for its cost on the platform; this is a fake of it
	})
	return res.GetReceivedMessages(), err
}

func (b *Broker) ack(ctx context.Context, s Subscription, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := b.sub.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: b.subscription(s.Name), AckIds: ids})
	return err
}

// modifyAckDeadline keeps a message from being delivered to anybody else for a while; 0 gives it back.
func (b *Broker) modifyAckDeadline(ctx context.Context, s Subscription, id string, d time.Duration) error {
	seconds := int32(math.Ceil(min(d, maxAckDeadline).Seconds()))
	_, err := b.sub.ModifyAckDeadline(ctx, &pb.ModifyAckDeadlineRequest{
		Subscription: b.subscription(s.Name), AckIds: []string{id}, AckDeadlineSeconds: seconds,
	})
	return err
}

const maxAckDeadline = 600 * time.Second // Pub/Sub's own limit
