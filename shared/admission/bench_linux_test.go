package admission_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

// BenchmarkAdmit is one request that is admitted and leaves, through the pipeline, by the CPU time of its thread: in turn
// with limits off and on, against one Redis, so that both see the same machine. It reports medians, 99th percentiles, and what the
// limits add at each.
func BenchmarkAdmit(b *testing.B) {
	h := newHouse(b, all(many))
	off := &house{House: h.Beside()}
	e := functest.Environment(b, h.Database, h.Redis.Addr, functest.Nowhere)
	if err := os.WriteFile(e.FlagsFile, []byte(`{"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		b.Fatal(err)
	}
	off.open(e)
	cookie := "gms_id=" + h.Must(204, "GET", "/read", "", "").Cookie()
	h.Log.Drop()
	off.Log.Drop()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	houses := [...]*house{off, h}
	var took [2][]time.Duration
	ask := func(n int) {
		r := httptest.NewRequest("GET", "/read", nil)
		r.Header = http.Header{"User-Agent": {functest.Firefox}, "Accept-Language": {"fa-AF"}, "Cookie": {cookie}}
		w := httptest.NewRecorder()
		began := threadTime()
		houses[n].ServeHTTP(w, r)
		took[n] = append(took[n], threadTime()-began)
		if w.Code != http.StatusNoContent || (w.Header()["Ratelimit"] != nil) != (n == 1) {
			b.Fatal(w.Code, w.Header())
		}
	}
	for n := range 200 { // connections, scripts
		ask(n % 2)
	}
	took[0], took[1] = took[0][:0], took[1][:0]
	for n := 0; b.Loop(); n++ {
		ask(n % 2)
		ask(1 - n%2)
	}
	at := func(n int, share float64) float64 {
		slices.Sort(took[n])
		return float64(took[n][int(share*float64(len(took[n])-1))]) / float64(time.Microsecond)
	}
	b.ReportMetric(at(0, 0.5), "off-p50-µs")
	b.ReportMetric(at(1, 0.5), "on-p50-µs")
	b.ReportMetric(at(0, 0.99), "off-p99-µs")
	b.ReportMetric(at(1, 0.99), "on-p99-µs")
	b.ReportMetric(at(1, 0.5)-at(0, 0.5), "added-p50-µs")
	b.ReportMetric(at(1, 0.99)-at(0, 0.99), "added-p99-µs")
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
