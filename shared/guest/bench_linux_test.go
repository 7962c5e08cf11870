package guest_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// BenchmarkControllerBegin measures the CPU time of the thread for a request through Begin and
// Finish: without limits, with limits, and with limits and bot detection. The three harnesses take
// turns and share a Redis, so the state of the machine affects all three alike. The guest sends a
// request per second of the test's clock. The benchmark reports medians and 99th percentiles, and
// the difference from the first harness.
func BenchmarkControllerBegin(b *testing.B) {
	bots := newHarness(b, allClasses(unlimited, "enforce"))
	instance := func(flags string) *harness {
		h := &harness{bots.NewInstance()}
		h.mountRoutes(h.environment(flags))
		return h
	}
	harnesses := [...]*harness{instance(gateOff), instance(allClasses(unlimited, "off")), bots}
	cookie := "gms_id=" + bots.MustDo(204, "GET", "/read", "", "").SessionCookie()
	for _, h := range harnesses {
		h.Log.Discard()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var took [len(harnesses)][]time.Duration
	send := func(n int) {
		r := httptest.NewRequest("GET", "/read", nil)
		r.Header = http.Header{"User-Agent": {functest.Firefox}, "Accept": {"*/*"}, "Accept-Language": {"fa-AF"}, "Cookie": {cookie}}
		w := httptest.NewRecorder()
		began := threadTime()
		harnesses[n].ServeHTTP(w, r)
		took[n] = append(took[n], threadTime()-began)
		if got, want := w.Header()["Ratelimit"] != nil, n > 0; w.Code != http.StatusNoContent || got != want {
			b.Fatalf("got %d with rate-limit headers %t, want 204 with %t", w.Code, got, want)
		}
	}
	round := func(n int) {
		bots.Advance(time.Second)
		for i := range harnesses {
			send((n + i) % len(harnesses))
		}
	}
	for n := range 150 { // opens connections and loads scripts
		round(n)
	}
	for n := range took {
		took[n] = took[n][:0]
	}
	for n := 0; b.Loop(); n++ {
		round(n)
	}
	quantile := func(n int, share float64) float64 {
		slices.Sort(took[n])
		return float64(took[n][int(share*float64(len(took[n])-1))]) / float64(time.Microsecond)
	}
	for n, name := range []string{"off", "limits", "bots"} {
		for percent, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
			b.ReportMetric(quantile(n, share), name+"-"+percent+"-µs")
			if n > 0 {
				b.ReportMetric(quantile(n, share)-quantile(0, share), name+"-added-"+percent+"-µs")
			}
		}
	}
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var spec syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&spec)), 0); failed != 0 {
		panic(failed) // unreachable: every Linux since 2.6 has the clock
	}
	return time.Duration(spec.Nano())
}
