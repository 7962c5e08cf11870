package broker

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

func message(data string) *pb.PubsubMessage { return &pb.PubsubMessage{Data: []byte(data)} }

// remembered is how many messages pstest has in memory.
func remembered(b *Broker) int {
	b.own.gate.RLock() // not while it forgets: pstest's messages are not safe to look at twice at once
	defer b.own.gate.RUnlock()
	return len(b.own.fake.Messages())
}

func TestALongRunIsForgottenWhenAllIsDone(t *testing.T) {
	b := open(t)
	b.own.limit = 200
	told := b.Listen()
	defer told.Stop()
	hung := make(chan struct{})
	f := newFunction(t, func(n int, _ wrapped, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-hung // a relay at work is always under way
		}
	})
	_, heard := watched(t, b, map[string]string{"Relay": f.URL})
	defer close(hung)
	publish(t, b, ticks[0].Topic, "{}", "")
	eventually(t, "the push begins", func() bool { return len(f.asked()) == 1 })
	for n := range 1000 {
		publish(t, b, Published()[n%3].Topic, fmt.Sprint(n), fmt.Sprint(n%7))
		if kept := remembered(b); kept > 400 {
			t.Fatalf("%d in memory after %d", kept, n)
		}
	}
	eventually(t, "all is told", func() bool { _, n, _ := all(told, 0); return n == 1000 })
	hung <- struct{}{}
	if d := fate(t, heard); d.State != Delivered || d.Attempt != 1 {
		t.Errorf("the one under way: %+v", d)
	}
}

func TestNothingThatSomebodyWaitsForIsForgotten(t *testing.T) {
	b := open(t)
	b.own.limit = 10
	for n := range 40 {
		publish(t, b, Published()[0].Topic, fmt.Sprint(n), "")
	}
	b.own.sweeps.Wait()
	if kept := remembered(b); kept != 40 {
		t.Errorf("%d in memory", kept)
	}
	told := b.Listen()
	defer told.Stop()
	eventually(t, "all is told", func() bool { _, n, _ := all(told, 0); return n == 40 })
}

func TestTheClockNeverStandsStill(t *testing.T) {
	c := clock{last: time.Now().Add(time.Hour)}
	for range 1000 {
		before := c.last
		if now := c.now(); !now.After(before) {
			t.Fatalf("%v after %v", now, before)
		}
	}
}

func TestIdsAreOrderedAsNumbers(t *testing.T) {
	for _, c := range []struct{ a, b string }{{"m9", "m10"}, {"m10", "m11"}, {"8", "123"}} {
		if older(c.a, c.b) >= 0 || older(c.b, c.a) <= 0 || older(c.a, c.a) != 0 {
			t.Errorf("%v", c)
		}
	}
}
