package pubsub

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// openTestBroker starts a broker in this process until the test ends.
func openTestBroker(t *testing.T) *Broker {
	t.Helper()
	b, err := OpenBroker(t.Context(), BrokerOptions{Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// fakeFunction is a test double of a function: handler responds to push n, and pushes records all
// requests.
type fakeFunction struct {
	*httptest.Server
	handler func(n int, p pushRequest, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	pushes []pushRequest
}

func newFakeFunction(t *testing.T, answer func(n int, p pushRequest, w http.ResponseWriter, r *http.Request)) *fakeFunction {
	f := &fakeFunction{handler: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p pushRequest
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		f.pushes = append(f.pushes, p)
		n := len(f.pushes)
		f.mu.Unlock()
		f.handler(n, p, w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeFunction) received() []pushRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]pushRequest(nil), f.pushes...)
}

// respondWith returns a handler that responds to every push with a status.
func respondWith(status int) func(int, pushRequest, http.ResponseWriter, *http.Request) {
	return func(_ int, _ pushRequest, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

var testBackoff = Backoff{time.Millisecond, 4 * time.Millisecond}

// startDispatcher starts a dispatcher until the test ends and returns its deliveries.
func startDispatcher(t *testing.T, b *Broker, endpoints map[string]string) (*Dispatcher, <-chan Delivery) {
	t.Helper()
	deliveries := make(chan Delivery, 10_000)
	d := b.StartDispatcher(endpoints, testBackoff, func(d Delivery) { deliveries <- d })
	t.Cleanup(d.Stop)
	return d, deliveries
}

// finalDelivery returns the next delivery in a final state. It fails the test after 20 s.
func finalDelivery(t *testing.T, deliveries <-chan Delivery) Delivery {
	t.Helper()
	for {
		select {
		case d := <-deliveries:
			if d.State != Waiting {
				return d
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no delivery in a final state within 20 s")
		}
	}
}

func publish(t *testing.T, b *Broker, topic, data, key string) string {
	t.Helper()
	id, err := b.publish(t.Context(), topic, &pb.PubsubMessage{Data: []byte(data), OrderingKey: key, Attributes: map[string]string{"a": "b"}})
	if err != nil {
		t.Error(err)
	}
	return id
}

// eventually waits until a condition holds. It fails the test after 20 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("not within 20 s: %s", what)
		}
		runtime.Gosched()
		sleep(t.Context(), time.Millisecond)
	}
}

// pullAll pulls the available messages of a subscription.
func pullAll(t *testing.T, b *Broker, name string) []*pb.ReceivedMessage {
	t.Helper()
	found, err := b.pull(t.Context(), Subscription{Name: name}, 1000, false)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func themeSubscription() Subscription { return platformSubscriptions[0] }

// connectExternal opens a Broker on a running broker, as on an external emulator.
func connectExternal(t *testing.T, host string) *Broker {
	t.Helper()
	b, err := OpenBroker(t.Context(), BrokerOptions{Host: host, Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// leakedGoroutines counts the goroutines of this package, of pstest and of gRPC connections.
func leakedGoroutines() (n int, stacks string) {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, "local/pubsub.") && !strings.Contains(stack, "pubsub.TestMain") ||
			strings.Contains(stack, "pstest") || strings.Contains(stack, "google.golang.org/grpc") {
			n++
			stacks += stack + "\n\n"
		}
	}
	return n, stacks
}

func TestMain(m *testing.M) {
	code := m.Run()
	deadline, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	for {
		n, stacks := leakedGoroutines()
		if n == 0 {
			break
		}
		if deadline.Err() != nil {
			os.Stderr.WriteString("leaked goroutines:\n" + stacks)
			code = 1
			break
		}
		sleep(deadline, 10*time.Millisecond)
	}
	os.Exit(code)
}
