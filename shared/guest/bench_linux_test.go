package guest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// BenchmarkControllerBegin is one request that is admitted and leaves, through the pipeline, by the CPU time of its thread: in turn
// without limits, with them, and with the detector as well, against one Redis, so that all see the same machine. A guest
// asks once a second, by the clock of the test. It reports medians, 99th percentiles, and what is added at each.
func BenchmarkControllerBegin(b *testing.B) {
	whole := newHarness(b, strings.Replace(allClasses(unlimited), `"off"`, `"enforce"`, 1))
	beside := func(flags string) *harness {
		h := &harness{Harness: whole.NewInstance()}
		e := functest.Environment(b, h.Database, h.Redis.Addr, functest.UnreachableURL)
		if err := os.WriteFile(e.FlagsFile, []byte(flags), 0o600); err != nil {
			b.Fatal(err)
		}
		h.mountRoutes(e)
		return h
	}
	houses := [...]*harness{beside(`{"limitsEnabled":false,"botMode":"off"}`), beside(allClasses(unlimited)), whole}
	cookie := "gms_id=" + whole.MustDo(204, "GET", "/read", "", "").SessionCookie()
	for _, h := range houses {
		h.Log.Discard()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var took [len(houses)][]time.Duration
	ask := func(n int) {
		r := httptest.NewRequest("GET", "/read", nil)
		r.Header = http.Header{"User-Agent": {functest.Firefox}, "Accept": {"*/*"}, "Accept-Language": {"fa-AF"}, "Cookie": {cookie}}
		w := httptest.NewRecorder()
		began := threadTime()
		houses[n].ServeHTTP(w, r)
		took[n] = append(took[n], threadTime()-began)
		if w.Code != http.StatusNoContent || (w.Header()["Ratelimit"] != nil) != (n > 0) {
			b.Fatal(w.Code, w.Header())
		}
	}
	turn := func(n int) {
		whole.Advance(time.Second)
		for i := range houses {
			ask((n + i) % len(houses))
		}
	}
	for n := range 150 { // connections, scripts
		turn(n)
	}
	for n := range took {
		took[n] = took[n][:0]
	}
	for n := 0; b.Loop(); n++ {
		turn(n)
	}
	at := func(n int, share float64) float64 {
		slices.Sort(took[n])
		return float64(took[n][int(share*float64(len(took[n])-1))]) / float64(time.Microsecond)
	}
	for n, name := range []string{"off", "limits", "bots"} {
		for percent, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
			b.ReportMetric(at(n, share), name+"-"+percent+"-µs")
			if n > 0 {
				b.ReportMetric(at(n, share)-at(0, share), name+"-added-"+percent+"-µs")
			}
		}
	}
}

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var spec syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&spec)), 0); failed != 0 {
		panic(failed) // unreachable: every Linux since 2.6 has the clock
	}
	return time.Duration(spec.Nano())
}
