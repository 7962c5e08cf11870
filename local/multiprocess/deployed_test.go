// Package multiprocess tests functions that run as processes of their own beside a development
// server: with the environment that Terraform gives them, during a rollout, and in a stampede. The
// processes are this test binary. The package has tests only; ./dev test runs them without the race
// detector, which would slow the processes down.
package multiprocess

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/local/terraform"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
)

// TestMain runs a function when FUNCTION_TARGET is set, as the platform does, the search folder
// when searchState is set, and the tests otherwise.
func TestMain(m *testing.M) {
	if os.Getenv("FUNCTION_TARGET") != "" {
		fmt.Fprintln(os.Stderr, funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT")))
		os.Exit(1)
	}
	if state := os.Getenv(searchState); state != "" {
		if err := serveSearch(state); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const edgeSecret = "the-secret-that-the-load-balancer-adds"

// localEnv returns the environment of a deployed function on this machine: the one that Terraform
// plans, with local values for the services that only the platform has. It adds only the variables
// that it names, and keeps the planned values that need no local replacement.
func localEnv(f terraform.Function, local map[string]string, keySet string) []string {
	env := maps.Clone(f.Environment)
	replace := func(name, with, value string) {
		if _, ok := env[name]; ok {
			delete(env, name)
			if value != "" {
				env[with] = value
			}
		}
	}
	// Postgres replaces Cloud SQL and its login. The local Redis has no password.
	replace("CLOUDSQL_INSTANCE", "DATABASE_URL", local["DATABASE_URL"])
	replace("CLOUDSQL_USER", "", "")
	replace("CLOUDSQL_DATABASE", "", "")
	replace("CLOUDSQL_ADDRESS", "", "")
	replace("CLOUDSQL_CA", "", "")
	replace("REDIS_ADDR", "REDIS_ADDR", local["REDIS_ADDR"])
	replace("ENVIRONMENT", "ENVIRONMENT", "local") // the prefix of the development server's Redis keys
	// Sandbox upstreams, which need no token; the test's OTLP collector; flags in a file.
	for _, name := range []string{"SEARCH_URL", "PRICING_URL", "PROPERTY_URL", "THEME_URL", "UPSTREAM_AUTH"} {
		replace(name, name, local[name])
	}
	replace("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", local["OTEL_EXPORTER_OTLP_ENDPOINT"])
	replace("REMOTE_CONFIG_PROJECT", "FLAGS_FILE", local["FLAGS_FILE"])
	// The key set of Google; the broker and the project of its topics.
	replace("CALLER_ISSUER", "CALLER_ISSUER", oidctest.IssuerURL)
	replace("CALLER_KEYS", "CALLER_KEYS", keySet)
	replace("PUBSUB_ENDPOINT", "PUBSUB_EMULATOR_HOST", local["PUBSUB_EMULATOR_HOST"])
	replace("PUBSUB_PROJECT", "PUBSUB_PROJECT", local["PUBSUB_PROJECT"])
	for name := range f.Secrets {
		switch name {
		case "REDIS_PASSWORD":
		case "EDGE_SECRET":
			env[name] = edgeSecret
		default:
			env[name] = local[name]
		}
	}
	// Variables that the platform sets.
	env["FUNCTION_TARGET"], env["K_SERVICE"], env["K_REVISION"] = f.EntryPoint, f.Name, f.Name+"-00001-abc"
	var all []string
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// startFunctions starts a process for each planned function and returns the local address of each,
// by its deployed address.
func startFunctions(t *testing.T, functions []terraform.Function, local map[string]string, keySet string) map[string]*url.URL {
	t.Helper()
	at := map[string]*url.URL{}
	var ready errgroup.Group
	for _, f := range functions {
		// The framework opens the port itself, so the test cannot hold the port until then.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		_, port, _ := net.SplitHostPort(addr)
		at[f.URI] = &url.URL{Scheme: "http", Host: addr}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(localEnv(f, local, keySet), "PORT="+port)
		output := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = output, output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		t.Cleanup(func() {
			cmd.Process.Kill()
			<-ended
			if t.Failed() {
				t.Logf("%s:\n%s", f.Name, output)
			}
		})
		ready.Go(func() error { return servertest.WaitListening(addr, ended) })
	}
	if err := ready.Wait(); err != nil {
		t.Fatal(err)
	}
	return at
}

// startGateway serves the routes of the planned gateway document as the edge and the gateway do,
// and the routes below /_local/ of the development server. also replaces some of these routes.
func startGateway(t *testing.T, plan *terraform.Plan, at map[string]*url.URL, local string, also map[string]http.HandlerFunc) string {
	t.Helper()
	routes, err := plan.Routes()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.Method+" "+r.Path, &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(at[r.Address])
			p.Out.Header.Set("X-Edge-Secret", edgeSecret)
			// guest; load balancer; gateway
			p.Out.Header["X-Forwarded-For"] = []string{"203.0.113.7, 198.51.100.1, 192.0.2.1"}
			p.Out.Header.Set("Authorization", "Bearer of.the.gateway")
		}})
	}
	system, err := url.Parse(local)
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/_local/", httputil.NewSingleHostReverseProxy(system))
	for pattern, h := range also {
		mux.HandleFunc(pattern, h)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// The test runs the journey of docs/tour.md through the planned gateway against processes with the
// planned environment, and calls every internal route as its Pub/Sub subscription does.
func TestDeployedFunctions_ServeWithPlannedEnvironment(t *testing.T) {
	plan, err := terraform.PlanEnvironment(t.Context(), servertest.Root(t), t.TempDir(), "production")
	if errors.Is(err, terraform.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	functions, err := plan.Functions()
	if err != nil {
		t.Fatal(err)
	}

	dir := servertest.StateDir(t)
	s := servertest.Start(t, dir)
	servertest.SetFlags(t, s, `{"limitsEnabled":null,"botMode":null}`)
	var run struct {
		Env map[string]string `json:"env"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	google, err := oidctest.New("of-this-test")
	if err != nil {
		t.Fatal(err)
	}
	keySet := filepath.Join(dir, "keys-of-this-test.json")
	if err := os.WriteFile(keySet, google.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	var exports atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { exports.Add(1) }))
	t.Cleanup(collector.Close)
	run.Env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.URL
	at := startFunctions(t, functions, run.Env, keySet)
	byName := map[string]terraform.Function{}
	for _, f := range functions {
		byName[f.EntryPoint] = f
	}

	bootstrap := bootstrapHandler(t, byName["Consume"], at, google, run.Env["HANDOFF_KEYS"])
	relay := func(w http.ResponseWriter, r *http.Request) {
		if status := pushMessage(r.Context(), t, at[byName["Relay"].URI].String()+"/internal/jobs/relay", `{"once":true}`); status != http.StatusOK {
			t.Errorf("relay: %d, want 200", status)
		}
		// The relay of the development server may be publishing events of this session: its job
		// waits until all are published.
		_, answer := servertest.Call(t, http.MethodPost, s.URL+"/_local/jobs/relay", "")
		json.MarshalWrite(w, answer)
	}
	gate := startGateway(t, plan, at, s.URL, map[string]http.HandlerFunc{
		"POST /_local/tenant/bootstrap": bootstrap, "POST /_local/jobs/relay": relay,
	})
	servertest.RunJourney(t, gate, servertest.TourScript(t, "A guest's journey"))
	if exports.Load() == 0 {
		t.Error("the functions exported no trace and no metric")
	}

	pushed, _, err := plan.Subscriptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range pushed {
		data, want := `{"dryRun":true}`, http.StatusOK
		if strings.Contains(sub.Endpoint, "/events/") {
			data, want = `{}`, http.StatusOK // not an event of the subject: quarantined and acknowledged
		}
		status := pushMessage(t.Context(), t, at[sub.Audience].String()+strings.TrimPrefix(sub.Endpoint, sub.Audience), data)
		if status != want && status != http.StatusNoContent {
			t.Errorf("%s: %d, want %d or 204", sub.Name, status, want)
		}
	}
	res, answer := servertest.Call(t, http.MethodPost, at[byName["Migrate"].URI].String()+"/internal/migrate", "")
	// of functions and people on call; the local database has none of these users
	users := strings.Split(byName["Migrate"].Environment["DATABASE_USERS"], ",")
	if res.StatusCode != http.StatusOK || len(users) < len(functions) || len(answer["missing"].([]any)) != len(users) {
		t.Errorf("migrate: %d %v, want 200 and %d missing users", res.StatusCode, answer, len(users))
	}
	for name, f := range byName {
		if f.Kind != "public" {
			continue
		}
		// A request that bypasses the edge has no edge secret.
		res, err := http.Get(at[f.URI].String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: a request that bypasses the edge gets %d, want 403", name, res.StatusCode)
		}
	}
}

// bootstrapHandler returns a tenant's BFF that consumes handoffs at the process of Consume, with
// the audience and the account that Terraform plans.
func bootstrapHandler(t *testing.T, consume terraform.Function, at map[string]*url.URL, google *oidctest.Issuer, ring string) http.HandlerFunc {
	t.Helper()
	keys, err := handoff.ParseKeys(ring)
	if err != nil {
		t.Fatal(err)
	}
	consumeProxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(at[consume.URI])
		token := google.Token(consume.Environment["CALLER_AUDIENCE"], consume.Environment["CALLER_ACCOUNTS"], time.Now())
		p.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(consumeProxy.Close)
	bff := tenantstub.New(consumeProxy.URL, keys, google, time.Now)
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Token string `json:"token"`
		}
		if err := json.UnmarshalRead(r.Body, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := bff.Bootstrap(r.Context(), in.Token)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", answer.ContentType)
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	}
}

// pushMessage posts a message as Pub/Sub does and returns the status of the response; 0 when there
// is none.
func pushMessage(ctx context.Context, t *testing.T, to, data string) int {
	t.Helper()
	body := fmt.Sprintf(`{"message":{"messageId":"%d","publishTime":"2026-12-01T00:00:00Z","data":%q},"subscription":"s","deliveryAttempt":1}`,
		time.Now().UnixNano(), base64.StdEncoding.EncodeToString([]byte(data)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}
