package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
)

// reading is the state of the meters at one moment.
type reading struct {
	cpu           time.Duration // user and system time of the servers' processes
	roundTrips    int64         // reads by Redis from clients: one per command or pipeline
	upstreamCalls int64         // answered by the sandbox upstreams
}

func (r reading) minus(s reading) reading {
	return reading{r.cpu - s.cpu, r.roundTrips - s.roundTrips, r.upstreamCalls - s.upstreamCalls}
}

// meter reads the counters of processes, Redis and sandbox upstreams.
type meter struct {
	rdb     goredis.UniversalClient
	sandbox *sandbox.Sandbox
}

func (m *meter) read(servers ...*server) (reading, error) {
	var r reading
	for _, s := range servers {
		r.cpu += processCPU(s.cmd.Process.Pid)
	}
	info, err := m.rdb.Info(context.Background(), "stats").Result()
	if err != nil {
		return r, fmt.Errorf("bench: read the statistics of Redis: %w", err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "total_reads_processed:"); ok {
			r.roundTrips, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	r.roundTrips-- // INFO itself
	for _, u := range m.sandbox.Upstreams {
		r.upstreamCalls += u.Counters().Calls
	}
	return r, nil
}

const ticksPerSecond = 100 // USER_HZ, the same on every Linux

// processCPU returns the CPU time of a process; 0 on systems other than Linux.
func processCPU(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the process name before may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
