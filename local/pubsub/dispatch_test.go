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
	b := openTestBroker(t)
	bodies := make(chan string, 1)
	f := newFakeFunction(t, func(_ int, _ pushRequest, w http.ResponseWriter, r *http.Request) {
		bodies <- r.Method + " " + r.Header.Get("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	})
	_, heard := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	id := publish(t, b, themeSubscription().Topic, `{"x":1}`, "key")
	if d := finalDelivery(t, heard); d.State != Delivered || d.Attempt != 1 || d.Response.Status != 204 || d.Message.MessageId != id {
		t.Errorf("%+v", d)
	}
	p := f.received()[0]
	if head := <-bodies; head != "POST application/json" {
		t.Error(head)
	}
	m := p.Message
	if string(m.Data) != `{"x":1}` || m.MessageID != id || m.MessageID2 != id || m.OrderingKey != "key" || m.Attributes["a"] != "b" ||
		m.PublishTime.IsZero() || !m.PublishTime2.Equal(m.PublishTime) ||
		p.Subscription != "projects/test/subscriptions/bff-consumer.theme.published.v1" || p.DeliveryAttempt != 1 {
		t.Errorf("%+v", p)
	}
}

func TestResponse_AcknowledgesOnlyPubSubStatuses(t *testing.T) {
	for status, want := range map[int]bool{
		200: true, 201: true, 202: true, 204: true, 203: false, 206: false, 301: false, 400: false, 404: false, 429: false, 500: false, 503: false,
	} {
		if (Response{Status: status}).Acknowledges() != want {
			t.Errorf("%d", status)
		}
	}
}

func TestDispatcher_FailingMessageEndsInDeadLetterTopic(t *testing.T) {
	for _, s := range []Subscription{platformSubscriptions[0], platformSubscriptions[2], jobSubscriptions[1]} {
		t.Run(s.Name, func(t *testing.T) {
			b := openTestBroker(t)
			f := newFakeFunction(t, respondWith(http.StatusInternalServerError))
			_, heard := startDispatcher(t, b, map[string]string{s.Function: f.URL})
			published := time.Now()
			id := publish(t, b, s.Topic, "poison", "k")
			d := finalDelivery(t, heard)
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
				t.Fatalf("%d dead letters", len(dead))
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
	b := openTestBroker(t)
	f := newFakeFunction(t, func(_ int, p pushRequest, w http.ResponseWriter, _ *http.Request) {
		if string(p.Message.Data) == "late" && p.DeliveryAttempt < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	_, heard := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	publish(t, b, themeSubscription().Topic, "late", "")
	for i := range 100 {
		publish(t, b, themeSubscription().Topic, fmt.Sprint(i), "")
	}
	seen := map[string]int{}
	for range 101 {
		d := finalDelivery(t, heard)
		if d.State != Delivered {
			t.Errorf("%+v", d)
		}
		seen[string(d.Message.Data)] = d.Attempt
	}
	if len(seen) != 101 || seen["late"] != 4 || seen["7"] != 1 {
		t.Errorf("%d messages, the late one after %d attempts", len(seen), seen["late"])
	}
	if dead := pullAll(t, b, themeSubscription().DeadLetterTopic); len(dead) != 0 {
		t.Errorf("%d dead letters", len(dead))
	}
}

func TestPush_ResponseAfterAckDeadlineIsIgnored(t *testing.T) {
	b := openTestBroker(t)
	s := themeSubscription()
	s.AckDeadline = 50 * time.Millisecond
	f := newFakeFunction(t, func(_ int, _ pushRequest, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := newPusher(map[string]string{s.Function: f.URL})
	defer p.client.CloseIdleConnections()
	publish(t, b, s.Topic, "x", "")
	m := pullAll(t, b, s.Name)[0]
	if a := p.push(t.Context(), s, s.Name, m.Message, 1); a.Acknowledges() || a.Err != "no answer within the acknowledgement deadline" {
		t.Errorf("%+v", a)
	}
	f.Close()
	if a := p.push(t.Context(), s, s.Name, m.Message, 1); a.Acknowledges() || a.Err == "" {
		t.Errorf("nobody there: %+v", a)
	}
}

func TestDispatcher_LimitsConcurrentPushes(t *testing.T) {
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
	_, heard := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	for range 3 * maxConcurrentPushes {
		publish(t, b, themeSubscription().Topic, "x", "")
	}
	for range 3 * maxConcurrentPushes {
		finalDelivery(t, heard)
	}
	if most.Load() != maxConcurrentPushes {
		t.Errorf("%d at once", most.Load())
	}
}

func TestDispatcher_StopReturnsInFlightMessages(t *testing.T) {
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
	heard := make(chan Delivery, 100)
	first := b.StartDispatcher(map[string]string{"ThemePublished": f.URL}, Backoff{time.Hour, time.Hour}, func(d Delivery) { heard <- d })
	publish(t, b, themeSubscription().Topic, "hangs", "")
	publish(t, b, themeSubscription().Topic, "fails", "")
	<-begun
	<-begun
	eventually(t, "the failure is known", func() bool { return len(heard) == 1 })
	first.Stop()
	first.mu.Lock()
	if len(first.ackIDs) != 0 {
		t.Errorf("still held: %v", first.ackIDs)
	}
	first.mu.Unlock()
	if d := <-heard; d.State != Waiting || string(d.Message.Data) != "fails" {
		t.Errorf("%+v", d)
	}
	taken := newFakeFunction(t, respondWith(200))
	_, again := startDispatcher(t, b, map[string]string{"ThemePublished": taken.URL})
	var got []string
	for range 2 {
		got = append(got, string(finalDelivery(t, again).Message.Data))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"fails", "hangs"}) {
		t.Errorf("%v", got)
	}
}

func TestBackoff_DoublesUpToMax(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 7: 6400, 8: 10_000, 100: 10_000} {
		if got := DefaultBackoff.delay(attempts); got != want*time.Millisecond {
			t.Errorf("after %d: %v", attempts, got)
		}
	}
	if (Backoff{}).delay(3) != 0 {
		t.Error("none")
	}
}

func TestBroker_WorksWithExternalEmulator(t *testing.T) {
	other := openTestBroker(t)
	b := connectExternal(t, other.Host)
	if err := b.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	f := newFakeFunction(t, respondWith(200))
	_, heard := startDispatcher(t, b, map[string]string{"ThemePublished": f.URL})
	told := b.CollectTelemetry()
	defer told.Stop()
	publish(t, other, themeSubscription().Topic, "x", "")
	publish(t, other, TelemetrySubscriptions()[0].Topic, "y", "k")
	if d := finalDelivery(t, heard); d.State != Delivered {
		t.Errorf("%+v", d)
	}
	eventually(t, "telemetry", func() bool {
		n, _ := told.Read(0, func(TelemetryMessage) bool { return true })
		return n == 1
	})
	b.Close()
	if err := b.Ping(t.Context()); err == nil {
		t.Error("a closed broker answers")
	}
}

func TestOpenBroker_UnreachableHostIsError(t *testing.T) {
	ctx, cancel := shortContext(t)
	defer cancel()
	if _, err := OpenBroker(ctx, BrokerOptions{Host: "127.0.0.1:1", Project: "test"}); err == nil {
		t.Error("opened")
	}
}
