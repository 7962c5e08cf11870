package tenantstub

import (
	"net/http"
	"slices"
	"sync"
	"testing"
)

// scriptedEndpoint responds with a list of statuses, 0 for no response, and records the idempotency
// keys.
type scriptedEndpoint struct {
	statuses []int
	mu       sync.Mutex
	keys     []string
}

func (d *scriptedEndpoint) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.keys = append(d.keys, r.Header.Get("Idempotency-Key"))
	status := d.statuses[len(d.keys)-1]
	d.mu.Unlock()
	// net/http repeats requests with an Idempotency-Key on reused connections
	w.Header().Set("Connection", "close")
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

func (d *scriptedEndpoint) distinctKeys() int {
	keys := slices.Clone(d.keys)
	slices.Sort(keys)
	return len(slices.Compact(keys))
}

func TestBootstrap_ReloadAfterLostResponseReusesKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses   []int
		bootstraps int
		last       int // status
		keys       int
	}{
		"both answers lost":             {[]int{0, 0, 200}, 2, 200, 1},
		"one is 503, which is repeated": {[]int{503, 200}, 1, 200, 1},
		"503 and lost":                  {[]int{503, 0, 200}, 2, 200, 1},
		"503 for long":                  {[]int{503, 503}, 1, 503, 1},
		"503 for long, then a reload":   {[]int{503, 503, 200}, 2, 200, 1},
		"answered, then a reload":       {[]int{200, 409}, 2, 409, 2},
		"lost, answered, and again":     {[]int{0, 200, 409}, 2, 409, 2},
		"refused, then a reload":        {[]int{409, 409}, 2, 409, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := &scriptedEndpoint{statuses: c.statuses}
			b, token := newTestBFF(t, 0, d.serve)
			var last int
			for range c.bootstraps {
				if answer, err := b.Bootstrap(t.Context(), token); err == nil {
					last = answer.Status
				}
			}
			if last != c.last || len(d.keys) != len(c.statuses) || d.distinctKeys() != c.keys {
				t.Errorf("%d after %d calls under %d keys", last, len(d.keys), d.distinctKeys())
			}
		})
	}
}
