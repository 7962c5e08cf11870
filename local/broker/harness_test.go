package broker

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

// open starts a broker of our own until the test ends.
func open(t *testing.T) *Broker {
	t.Helper()
	b, err := Open(t.Context(), Options{Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// function is a double of one: it answers each push as it is told, and remembers what it was asked.
type function struct {
	*httptest.Server
	answer func(n int, p wrapped, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	pushes []wrapped
}

func newFunction(t *testing.T, answer func(n int, p wrapped, w http.ResponseWriter, r *http.Request)) *function {
	f := &function{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p wrapped
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		f.pushes = append(f.pushes, p)
		n := len(f.pushes)
		f.mu.Unlock()
		f.answer(n, p, w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *function) asked() []wrapped {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]wrapped(nil), f.pushes...)
}

// says answers every push with a status.
func says(status int) func(int, wrapped, http.ResponseWriter, *http.Request) {
	return func(_ int, _ wrapped, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

var quick = Backoff{time.Millisecond, 4 * time.Millisecond}

// watched dispatches to doors until the test ends and hands out what is heard of each push.
func watched(t *testing.T, b *Broker, doors map[string]string) (*Dispatcher, <-chan Delivery) {
	t.Helper()
	heard := make(chan Delivery, 10_000)
	d := b.Dispatch(doors, quick, func(d Delivery) { heard <- d })
	t.Cleanup(d.Stop)
	return d, heard
}

// fate is the last that is heard of a message.
func fate(t *testing.T, heard <-chan Delivery) Delivery {
	t.Helper()
	for {
		select {
		case d := <-heard:
			if d.State != Waiting {
				return d
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nothing more is heard")
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

// eventually asks again until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("never: %s", what)
		}
		runtime.Gosched()
		sleep(t.Context(), time.Millisecond)
	}
}

// left pulls what a subscription has.
func left(t *testing.T, b *Broker, name string) []*pb.ReceivedMessage {
	t.Helper()
	found, err := b.pull(t.Context(), Subscription{Name: name}, 1000, false)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func theme() Subscription { return platform[0] }

// foreign makes a broker of ours look like an emulator that runs by itself.
func foreign(t *testing.T, host string) *Broker {
	t.Helper()
	b, err := Open(t.Context(), Options{Host: host, Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// own counts the goroutines that have something to do with this package, its broker or its connections.
func own() (n int, stacks string) {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, "local/broker.") && !strings.Contains(stack, "broker.TestMain") ||
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
		n, stacks := own()
		if n == 0 {
			break
		}
		if deadline.Err() != nil {
			os.Stderr.WriteString("left behind:\n" + stacks)
			code = 1
			break
		}
		sleep(deadline, 10*time.Millisecond)
	}
	os.Exit(code)
}
