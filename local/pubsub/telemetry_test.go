package pubsub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func shortContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 100*time.Millisecond)
}

func readAll(telemetry *TelemetryLog, from int) (data []string, next, missed int) {
	next, missed = telemetry.Read(from, func(m TelemetryMessage) bool {
		data = append(data, m.Message.OrderingKey+" "+string(m.Message.Data))
		return true
	})
	return data, next, missed
}

// The events of a session are on many topics. Like the relay, the test publishes an event after the
// broker has accepted the previous event.
func TestTelemetryLog_KeepsSessionOrderAcrossTopics(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	telemetry := b.CollectTelemetry()
	defer telemetry.Stop()
	const sessions, events = 20, 50
	topics := TelemetrySubscriptions()
	var guests sync.WaitGroup
	for s := range sessions {
		guests.Go(func() {
			for e := range events {
				publish(t, b, topics[rand.IntN(len(topics))].Topic, fmt.Sprint(e), fmt.Sprint("session", s))
			}
		})
	}
	guests.Wait()
	if err := telemetry.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, n, _ := readAll(telemetry, 0); n != sessions*events {
		t.Errorf("got %d messages", n)
	}
	next := map[string]int{}
	telemetry.Read(0, func(m TelemetryMessage) bool {
		key := m.Message.OrderingKey
		if string(m.Message.Data) != fmt.Sprint(next[key]) {
			t.Errorf("%s: got %s, want %d", key, m.Message.Data, next[key])
		}
		next[key]++
		return true
	})
}

func TestTelemetryLog_ReadsFromCursorAndEvictsOldest(t *testing.T) {
	t.Parallel()
	telemetry := &TelemetryLog{capacity: 3}
	add := func(n int) { telemetry.add("s", newMessage(fmt.Sprint(n))) }
	if data, next, missed := readAll(telemetry, 7); data != nil || next != 0 || missed != 0 {
		t.Errorf("empty log: got %v, next %d, missed %d", data, next, missed)
	}
	for n := range 5 {
		add(n)
	}
	if data, next, missed := readAll(telemetry, 2); !slices.Equal(data, []string{" 2", " 3", " 4"}) || next != 5 || missed != 0 {
		t.Errorf("got %v, next %d, missed %d", data, next, missed)
	}
	add(5)
	if data, next, missed := readAll(telemetry, 2); !slices.Equal(data, []string{" 3", " 4", " 5"}) || next != 6 || missed != 1 {
		t.Errorf("got %v, next %d, missed %d", data, next, missed)
	}
	if next, _ := telemetry.Read(3, func(m TelemetryMessage) bool { return string(m.Message.Data) != "4" }); next != 4 {
		t.Errorf("got next %d, want 4", next)
	}
	if data, next, missed := readAll(telemetry, 99); data != nil || next != 6 || missed != 0 {
		t.Errorf("position beyond the end: got %v, next %d, missed %d", data, next, missed)
	}
}

func TestTelemetryLog_CatchUpStopsWithContext(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	telemetry := b.CollectTelemetry()
	telemetry.Stop()
	ctx, cancel := shortContext(t)
	defer cancel()
	if err := telemetry.CatchUp(ctx); err == nil {
		t.Error("CatchUp succeeds after Stop")
	}
}
