package pubsub

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

func newMessage(data string) *pb.PubsubMessage { return &pb.PubsubMessage{Data: []byte(data)} }

// storedMessages returns the number of messages in pstest.
func storedMessages(b *Broker) int {
	// excludes purge, because concurrent reads of pstest's messages are a data race
	b.pstest.publishMu.RLock()
	defer b.pstest.publishMu.RUnlock()
	return len(b.pstest.fake.Messages())
}

// The purge has a time limit, so the test runs alone.
func TestPstestServer_PurgesAcknowledgedMessages(t *testing.T) {
	b := openTestBroker(t)
	b.pstest.purgeAt = 200
	telemetry := b.CollectTelemetry()
	defer telemetry.Stop()
	hung := make(chan struct{})
	f := newFakeFunction(t, func(n int, _ pushRequest, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-hung // the push stays in flight, like a running relay
		}
	})
	_, deliveries := startDispatcher(t, b, map[string]string{"Relay": f.URL})
	defer close(hung)
	publish(t, b, jobSubscriptions[0].Topic, "{}", "")
	eventually(t, "the push begins", func() bool { return len(f.received()) == 1 })
	for n := range 1000 {
		publish(t, b, TelemetrySubscriptions()[n%3].Topic, fmt.Sprint(n), fmt.Sprint(n%7))
		if kept := storedMessages(b); kept > 400 {
			t.Fatalf("got %d stored messages after %d", kept, n)
		}
	}
	eventually(t, "all is telemetry", func() bool { _, n, _ := readAll(telemetry, 0); return n == 1000 })
	hung <- struct{}{}
	if d := finalDelivery(t, deliveries); d.State != Delivered || d.Attempt != 1 {
		t.Errorf("the message in flight: got %+v", d)
	}
}

func TestPstestServer_KeepsUnacknowledgedMessages(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	b.pstest.purgeAt = 10
	for n := range 40 {
		publish(t, b, TelemetrySubscriptions()[0].Topic, fmt.Sprint(n), "")
	}
	b.pstest.purges.Wait()
	if kept := storedMessages(b); kept != 40 {
		t.Errorf("got %d stored messages", kept)
	}
	telemetry := b.CollectTelemetry()
	defer telemetry.Stop()
	eventually(t, "all is telemetry", func() bool { _, n, _ := readAll(telemetry, 0); return n == 40 })
}

func TestMonotonicClock_NeverRepeatsATime(t *testing.T) {
	t.Parallel()
	c := monotonicClock{last: time.Now().Add(time.Hour)}
	for range 1000 {
		before := c.last
		if now := c.now(); !now.After(before) {
			t.Fatalf("clock: got %v after %v", now, before)
		}
	}
}

func TestCompareMessageIDs_OrdersNumerically(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b string }{{"m9", "m10"}, {"m10", "m11"}, {"8", "123"}} {
		if compareMessageIDs(c.a, c.b) >= 0 || compareMessageIDs(c.b, c.a) <= 0 || compareMessageIDs(c.a, c.a) != 0 {
			t.Errorf("case %v: wrong order", c)
		}
	}
}
