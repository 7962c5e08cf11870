package sweep

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const day = 24 * time.Hour

var keys = redisclient.Keys{Env: "test"}

// harness adds the registered entry points to the common harness. Their configuration comes from
// the process environment, as in production, so these tests do not run in parallel.
type harness struct{ *functest.Harness }

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{functest.New(t)}
	h.UseInternalAPI()
	t.Setenv("ENVIRONMENT", keys.Env)
	t.Setenv("REDIS_ADDR", h.Redis.Addr)
	t.Setenv("DATABASE_URL", h.Database)
	h.openAll()
	return h
}

// openAll builds every entry point again from the environment.
func (h *harness) openAll() {
	h.T.Helper()
	for _, f := range web.Functions() {
		h.MountFunction(f)
	}
}

// function returns the entry point with a name.
func (h *harness) function(name string) *web.Function {
	h.T.Helper()
	for _, f := range web.Functions() {
		if f.Name == name {
			return f
		}
	}
	h.T.Fatalf("no entry point %s", name)
	return nil
}

func (h *harness) path(name string) string {
	h.T.Helper()
	_, path, _ := strings.Cut(h.function(name).Pattern, " ")
	return path
}

// trigger delivers a tick with options to an entry point.
func (h *harness) trigger(name, options string) (int, Report) {
	h.T.Helper()
	return h.report(h.Push(h.path(name), functest.PushMessage{Data: options}))
}

// post sends a body to an entry point.
func (h *harness) post(name, body string) (int, Report) {
	h.T.Helper()
	return h.report(h.Do("POST", h.path(name), "", body))
}

func (h *harness) report(res *functest.Result) (status int, report Report) {
	h.T.Helper()
	if res.StatusCode == 200 {
		res.Decode(h.T, &report)
	}
	return res.StatusCode, report
}

// mustRemove triggers a run that must succeed, finish, and remove so many rows or sessions.
func (h *harness) mustRemove(name, options string, removed int64) {
	h.T.Helper()
	status, report := h.trigger(name, options)
	if status != 200 || report.Removed != removed || report.More {
		h.T.Errorf("%s %s: got %d %+v, want 200 and %d removed", name, options, status, report, removed)
	}
}
