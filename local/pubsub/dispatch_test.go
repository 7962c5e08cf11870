package pubsub

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPush_BodyMatchesPubSub(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	bodies := make(chan string, 1)
	f := newFakeFunction(t, func(_ int, _ pushRequest, w http.ResponseWriter, r *http.Request) {
		bodies <- r.Method + " " + r.Header.Get("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	})
	_, deliveries := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	id := publish(t, b, themeSubscription().Topic, `{"x":1}`, "key")
	if d := finalDelivery(t, deliveries); d.State != Delivered || d.Attempt != 1 || d.Response.Status != 204 || d.Message.MessageId != id {
		t.Errorf("got %+v, want message %s delivered in attempt 1", d, id)
	}
	p := f.received()[0]
	if head := <-bodies; head != "POST application/json" {
		t.Errorf("got %s, want POST application/json", head)
	}
	m := p.Message
	if string(m.Data) != `{"x":1}` || m.MessageID != id || m.MessageID2 != id || m.OrderingKey != "key" || m.Attributes["a"] != "b" ||
		m.PublishTime.IsZero() || !m.PublishTime2.Equal(m.PublishTime) ||
		p.Subscription != "projects/test/subscriptions/bff-consumer.theme.published.v1" || p.DeliveryAttempt != 1 {
		t.Errorf("got push body %+v", p)
	}
}

func TestResponse_AcknowledgesOnlyPubSubStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		200: true, 201: true, 202: true, 204: true, 203: false, 206: false, 301: false, 400: false, 404: false, 429: false, 500: false, 503: false,
	} {
		if (Response{Status: status}).Acknowledges() != want {
			t.Errorf("status %d: want %v", status, want)
		}
	}
}

func TestDispatcher_FailingMessageEndsInDeadLetterTopic(t *testing.T) {
	t.Parallel()
	for _, s := range []Subscription{platformSubscriptions[0], platformSubscriptions[2], jobSubscriptions[1]} {
		t.Run(s.Name, func(t *testing.T) {
			b := openTestBroker(t)
			f := newFakeFunction(t, respondWith(http.StatusInternalServerError))
			_, deliveries := startDispatcher(t, b, map[string]string{s.Function: f.URL})
			published := time.Now()
			id := publish(t, b, s.Topic, "poison", "k")
			d := finalDelivery(t, deliveries)
			if d.State != DeadLettered || d.Attempt != s.MaxAttempts || d.Response.Status != 500 {
				t.Errorf("%s after %d: %+v", d.State, d.Attempt, d.Response)
			}
			for i, p := range f.received() {
				if p.DeliveryAttempt != i+1 || p.Message.MessageID != id {
					t.Errorf("push %d: attempt %d of %s", i, p.DeliveryAttempt, p.Message.MessageID)
				}
			}
			dead := pullAll(t, b, s.Name+".dlq")
			if len(dead) != 1 {
				t.Fatalf("got %d dead letters, want 1", len(dead))
			}
			m := dead[0].Message
			at, err := time.Parse(time.RFC3339Nano, m.Attributes["CloudPubSubDeadLetterSourceTopicPublishTime"])
			if err != nil || at.Before(published) || at.After(time.Now()) {
				t.Errorf("published %v %v", at, err)
			}
			delete(m.Attributes, "CloudPubSubDeadLetterSourceTopicPublishTime")
			want := map[string]string{
				"a": "b", "CloudPubSubDeadLetterSourceSubscription": s.Name, "CloudPubSubDeadLetterSourceSubscriptionProject": "test",
				"CloudPubSubDeadLetterSourceDeliveryCount": fmt.Sprint(s.MaxAttempts),
			}
			if string(m.Data) != "poison" || m.OrderingKey != "k" || fmt.Sprint(m.Attributes) != fmt.Sprint(want) {
				t.Errorf("%s %s %v", m.Data, m.OrderingKey, m.Attributes)
			}
			if again := pullAll(t, b, s.Name); len(again) != 0 || len(f.received()) != s.MaxAttempts {
				t.Errorf("%d left, %d pushes", len(again), len(f.received()))
			}
		})
	}
}

func TestDispatcher_FailingMessageDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	f := newFakeFunction(t, func(_ int, p pushRequest, w http.ResponseWriter, _ *http.Request) {
		if string(p.Message.Data) == "late" && p.DeliveryAttempt < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	_, deliveries := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	publish(t, b, themeSubscription().Topic, "late", "")
	for i := range 100 {
		publish(t, b, themeSubscription().Topic, fmt.Sprint(i), "")
	}
	seen := map[string]int{}
	for range 101 {
		d := finalDelivery(t, deliveries)
		if d.State != Delivered {
			t.Errorf("got %+v, want delivered", d)
		}
		seen[string(d.Message.Data)] = d.Attempt
	}
	if len(seen) != 101 || seen["late"] != 4 || seen["7"] != 1 {
		t.Errorf("got %d messages, the failing message after %d attempts, want 101 and 4", len(seen), seen["late"])
	}
	if dead := pullAll(t, b, themeSubscription().DeadLetterTopic); len(dead) != 0 {
		t.Errorf("got %d dead letters, want 0", len(dead))
	}
}

func TestPush_ResponseAfterAckDeadlineIsIgnored(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	s := themeSubscription()
	s.AckDeadline = 50 * time.Millisecond
	f := newFakeFunction(t, func(_ int, _ pushRequest, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := newPusher(map[string]string{s.Function: f.URL})
	defer p.client.CloseIdleConnections()
	publish(t, b, s.Topic, "x", "")
	m := pullAll(t, b, s.Name)[0]
	if a := p.push(t.Context(), s, s.Name, m.Message, 1); a.Acknowledges() || a.Err != errDeadline.Error() {
		t.Errorf("got %+v, want error %q", a, errDeadline)
	}
	f.Close()
	if a := p.push(t.Context(), s, s.Name, m.Message, 1); a.Acknowledges() || a.Err == "" {
		t.Errorf("closed endpoint: got %+v, want an error", a)
	}
}

func TestDispatcher_LimitsConcurrentPushes(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	var now, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	f := newFakeFunction(t, func(int, pushRequest, http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == maxConcurrentPushes {
			once.Do(func() { close(full) })
		}
		<-full
	})
	_, deliveries := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	for range 3 * maxConcurrentPushes {
		publish(t, b, themeSubscription().Topic, "x", "")
	}
	for range 3 * maxConcurrentPushes {
		finalDelivery(t, deliveries)
	}
	if most.Load() != maxConcurrentPushes {
		t.Errorf("got %d concurrent pushes, want %d", most.Load(), maxConcurrentPushes)
	}
}

func TestDispatcher_StopReturnsInFlightMessages(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	begun := make(chan struct{}, 10)
	f := newFakeFunction(t, func(_ int, p pushRequest, w http.ResponseWriter, r *http.Request) {
		switch string(p.Message.Data) {
		case "hangs":
			begun <- struct{}{}
			<-r.Context().Done()
		case "fails":
			begun <- struct{}{}
			w.WriteHeader(500)
		}
	})
	deliveries := make(chan Delivery, 100)
	first := b.StartDispatcher(map[string]string{"ThemePublished": f.URL}, Backoff{time.Hour, time.Hour}, func(d Delivery) { deliveries <- d })
	publish(t, b, themeSubscription().Topic, "hangs", "")
	publish(t, b, themeSubscription().Topic, "fails", "")
	<-begun
	<-begun
	eventually(t, "the failure is known", func() bool { return len(deliveries) == 1 })
	first.Stop()
	first.mu.Lock()
	if len(first.ackIDs) != 0 {
		t.Errorf("messages in flight after Stop: %v", first.ackIDs)
	}
	first.mu.Unlock()
	if d := <-deliveries; d.State != Waiting || string(d.Message.Data) != "fails" {
		t.Errorf("got %+v, want the waiting message", d)
	}
	taken := newFakeFunction(t, respondWith(200))
	_, again := startDispatcher(t, b, map[string]string{"ThemePublished": taken.URL})
	var got []string
	for range 2 {
		got = append(got, string(finalDelivery(t, again).Message.Data))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"fails", "hangs"}) {
		t.Errorf("redelivered: got %v, want [fails hangs]", got)
	}
}

func TestBackoff_DoublesUpToMax(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 7: 6400, 8: 10_000, 100: 10_000} {
		if got := DefaultBackoff.delay(attempts); got != want*time.Millisecond {
			t.Errorf("after %d attempts: got %v, want %v", attempts, got, want*time.Millisecond)
		}
	}
	if (Backoff{}).delay(3) != 0 {
		t.Error("zero Backoff: got a delay")
	}
}

func TestBroker_WorksWithExternalEmulator(t *testing.T) {
	t.Parallel()
	other := openTestBroker(t)
	b := connectExternal(t, other.Host)
	if err := b.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	f := newFakeFunction(t, respondWith(200))
	_, deliveries := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	telemetry := b.CollectTelemetry()
	defer telemetry.Stop()
	publish(t, other, themeSubscription().Topic, "x", "")
	publish(t, other, TelemetrySubscriptions()[0].Topic, "y", "k")
	if d := finalDelivery(t, deliveries); d.State != Delivered {
		t.Errorf("%+v", d)
	}
	eventually(t, "telemetry", func() bool {
		n, _ := telemetry.Read(0, func(TelemetryMessage) bool { return true })
		return n == 1
	})
	b.Close()
	if err := b.Ping(t.Context()); err == nil {
		t.Error("Ping of a closed broker: got no error")
	}
}

func TestOpenBroker_UnreachableHostIsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := shortContext(t)
	defer cancel()
	if _, err := OpenBroker(ctx, BrokerOptions{Host: "127.0.0.1:1", Project: "test"}); err == nil {
		t.Error("got no error")
	}
}
