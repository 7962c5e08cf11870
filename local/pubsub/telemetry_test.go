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

func readAll(told *TelemetryLog, from int) (data []string, next, missed int) {
	next, missed = told.Read(from, func(m TelemetryMessage) bool {
		data = append(data, m.Message.OrderingKey+" "+string(m.Message.Data))
		return true
	})
	return data, next, missed
}

// The events of a session are on many topics. Each is published when the one before it was taken, as a relay does.
func TestTelemetryLog_KeepsSessionOrderAcrossTopics(t *testing.T) {
	b := openTestBroker(t)
	told := b.CollectTelemetry()
	defer told.Stop()
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
	if err := told.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, n, _ := readAll(told, 0); n != sessions*events {
		t.Errorf("%d told", n)
	}
	next := map[string]int{}
	told.Read(0, func(m TelemetryMessage) bool {
		key := m.Message.OrderingKey
		if string(m.Message.Data) != fmt.Sprint(next[key]) {
			t.Errorf("%s: %s, want %d", key, m.Message.Data, next[key])
		}
		next[key]++
		return true
	})
}

func TestTelemetryLog_ReadsFromCursorAndEvictsOldest(t *testing.T) {
	told := &TelemetryLog{capacity: 3}
	add := func(n int) { told.add("s", newMessage(fmt.Sprint(n))) }
	if data, next, missed := readAll(told, 7); data != nil || next != 0 || missed != 0 {
		t.Errorf("empty: %v %d %d", data, next, missed)
	}
	for n := range 5 {
		add(n)
	}
	if data, next, missed := readAll(told, 2); !slices.Equal(data, []string{" 2", " 3", " 4"}) || next != 5 || missed != 0 {
		t.Errorf("%v %d %d", data, next, missed)
	}
	add(5)
	if data, next, missed := readAll(told, 2); !slices.Equal(data, []string{" 3", " 4", " 5"}) || next != 6 || missed != 1 {
		t.Errorf("%v %d %d", data, next, missed)
	}
	if next, _ := told.Read(3, func(m TelemetryMessage) bool { return string(m.Message.Data) != "4" }); next != 4 {
		t.Errorf("stopped at %d", next)
	}
	if data, next, missed := readAll(told, 99); data != nil || next != 6 || missed != 0 {
		t.Errorf("a cursor from before a restart: %v %d %d", data, next, missed)
	}
}

func TestTelemetryLog_CatchUpStopsWithContext(t *testing.T) {
	b := openTestBroker(t)
	told := b.CollectTelemetry()
	told.Stop()
	ctx, cancel := shortContext(t)
	defer cancel()
	if err := told.CatchUp(ctx); err == nil {
		t.Error("nobody collects any more")
	}
}
