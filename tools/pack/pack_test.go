package main

import (
	"archive/zip"
	"bytes"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/pack"
)

// journeyState is the state of a guest's journey through the packed functions. A step uses the
// results of earlier steps.
type journeyState struct {
	env                      map[string]string // of every program
	issuer                   *oidctest.Issuer
	cookie, property, tenant string
	token                    string // of the minted handoff
}

// journeySteps returns a step for every folder, in the order of the journey: one entry point and
// its requests.
func journeySteps() []journeyStep {
	return []journeyStep{
		{"migrate", "Migrate", func(t *testing.T, j *journeyState, url string) {
			res, report := servertest.Call(t, http.MethodPost, url+"/internal/migrate", "")
			if newest, _ := report["newest"].(string); res.StatusCode != http.StatusOK || !strings.HasSuffix(newest, ".sql") {
				t.Errorf("%d %v", res.StatusCode, report)
			}
		}},
		{"search", "Search", func(t *testing.T, j *journeyState, url string) {
			res, found := servertest.Call(t, http.MethodPost, url+web.BasePath+"/search", servertest.SearchBody("Kabul"))
			list, _ := found["listings"].([]any)
			if res.StatusCode != http.StatusOK || len(list) == 0 || len(res.Cookies()) == 0 {
				t.Fatalf("%d %v", res.StatusCode, found)
			}
			j.cookie = "gms_id=" + res.Cookies()[0].Value
			hotel := list[0].(map[string]any)
			j.property, j.tenant = hotel["propertyId"].(string), hotel["tenantId"].(string)
		}},
		{"detail", "Detail", func(t *testing.T, j *journeyState, url string) {
			res, page := servertest.Call(t, http.MethodGet, url+web.BasePath+"/hotels/"+j.property, "")
			hotel, _ := page["property"].(map[string]any)
			if res.StatusCode != http.StatusOK || hotel["propertyId"] != j.property {
				t.Errorf("%d %v", res.StatusCode, page)
			}
		}},
		{"wishlist", "WishlistAdd", callRoute("WishlistAdd")},
		{"telemetry", "TelemetryClick", callRoute("TelemetryClick")},
		{"session", "Session", callRoute("Session")},
		{"handoff", "Handoff", func(t *testing.T, j *journeyState, to string) {
			res, answer := servertest.Call(t, http.MethodPost, to+web.BasePath+"/handoff", servertest.RouteRequests(j.property, j.tenant)["Handoff"].Body,
				"Cookie", j.cookie, "Idempotency-Key", "packed-"+j.property)
			link, _ := answer["url"].(string)
			at, err := url.Parse(link)
			if res.StatusCode != http.StatusCreated || err != nil {
				t.Fatalf("%d %v", res.StatusCode, answer)
			}
			j.token = at.Query().Get("h")
		}},
		{"consume", "Consume", func(t *testing.T, j *journeyState, url string) {
			keys, err := handoff.ParseKeys(j.env["HANDOFF_KEYS"])
			if err != nil {
				t.Fatal(err)
			}
			answer, err := tenantstub.New(url, keys, j.issuer, time.Now).Bootstrap(t.Context(), j.token)
			if err != nil || answer.Status != http.StatusOK {
				t.Fatalf("%+v, %v", answer, err)
			}
		}},
		{"invalidate", "TenantReinstated", func(t *testing.T, j *journeyState, url string) {
			const subject = "melmastoon.tenant.reinstated.v1"
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			event := `{"envelope":{"eventId":"` + id.New(id.Event, time.Now()) + `","subject":"` + subject + `","version":1,"occurredAt":"` + now +
				`","publishedAt":"` + now + `","producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},"payload":{"tenantId":"` +
				j.tenant + `","reinstatedAt":"` + now + `"}}`
			res, answer := servertest.Call(t, http.MethodPost, url+"/internal/events/tenant-reinstated", servertest.PushBody(event))
			if res.StatusCode != http.StatusOK || answer["outcome"] != "done" {
				t.Errorf("%d %v", res.StatusCode, answer)
			}
		}},
		{"relay", "Relay", func(t *testing.T, j *journeyState, url string) {
			res, report := servertest.Call(t, http.MethodPost, url+"/internal/jobs/relay", servertest.PushBody(`{"once":true}`))
			if res.StatusCode != http.StatusOK || report["depth"] != 0.0 {
				t.Errorf("%d %v", res.StatusCode, report)
			}
		}},
		{"sweep", "SweepInbox", func(t *testing.T, j *journeyState, url string) {
			res, report := servertest.Call(t, http.MethodPost, url+"/internal/jobs/sweep-inbox", servertest.PushBody(`{"dryRun":true}`))
			if res.StatusCode != http.StatusOK || report["dryRun"] != true {
				t.Errorf("%d %v", res.StatusCode, report)
			}
		}},
	}
}

type journeyStep struct {
	folder, target string
	run            func(*testing.T, *journeyState, string)
}

// callRoute sends the valid request of servertest.RouteRequests to a public function.
func callRoute(function string) func(*testing.T, *journeyState, string) {
	return func(t *testing.T, j *journeyState, url string) {
		v, method := servertest.RouteRequests(j.property, j.tenant)[function], http.MethodPost
		if v.Body == "" {
			method = http.MethodGet
		}
		if res, answer := servertest.Call(t, method, url+web.BasePath+v.Path, v.Body, "Cookie", j.cookie); res.StatusCode >= 300 {
			t.Errorf("%d %v", res.StatusCode, answer)
		}
	}
}

// The test packs every folder, builds each archive as the platform does, and runs a guest's journey
// through the programs. Each program runs as a process whose environment has the function's
// settings only.
func TestPack_EachArchiveBuildsOfflineAndServes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every function")
	}
	state := servertest.StateDir(t)
	servertest.Start(t, state)
	j := &journeyState{env: servertest.FunctionEnv(t, state)}
	var err error
	if j.issuer, err = oidctest.New("packed"); err != nil {
		t.Fatal(err)
	}
	j.env["CALLER_KEYS"] = filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(j.env["CALLER_KEYS"], j.issuer.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	folders, err := repository.FunctionFolders(servertest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	archives, binaries := t.TempDir(), t.TempDir()
	packFolders(t, pack.All, archives, binaries)
	t.Run("reproducible", func(t *testing.T) { checkReproducible(t, filepath.Join(archives, "search.zip")) })
	for _, s := range journeySteps() {
		folders = slices.DeleteFunc(folders, func(f string) bool { return f == s.folder })
		if !t.Run(s.folder, func(t *testing.T) {
			dir := filepath.Join(binaries, s.folder)
			s.run(t, j, startProgram(t, filepath.Join(dir, "main"), dir, s.target, j.env))
		}) {
			return // the next step needs the results of this one
		}
	}
	if len(folders) > 0 {
		t.Errorf("folders without a step: %v", folders)
	}
}

// startProgram runs a program until the test ends, with settings as its whole environment. It
// returns the program's URL as soon as the program listens.
func startProgram(t *testing.T, binary, dir, target string, settings map[string]string) string {
	t.Helper()
	port := servertest.FreePort(t)
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = []string{"FUNCTION_TARGET=" + target, "PORT=" + strconv.Itoa(port)}
	for name, value := range settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	servertest.Eventually(t, target+" listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", target, err)
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

// packFolders writes the archive of a folder, or of all, below out, and builds it below built
// unless built is empty.
func packFolders(t *testing.T, folder, out, built string) {
	t.Helper()
	var log bytes.Buffer
	began := time.Now()
	err := pack.Run(t.Context(), pack.Options{Root: servertest.Root(t), Function: folder, OutDir: out, BuildDir: built, Log: &log})
	if err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	t.Logf("packed in %v:\n%s", time.Since(began).Round(time.Millisecond), &log)
}

// checkReproducible packs the search folder again and compares the archive with the file first. The
// archive has no test and no package of another function.
func checkReproducible(t *testing.T, first string) {
	t.Helper()
	again := t.TempDir()
	packFolders(t, "search", again, "")
	var archives [2][]byte
	for i, path := range []string{first, filepath.Join(again, "search.zip")} {
		var err error
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Errorf("two archives of the same files differ: %d and %d bytes", len(archives[0]), len(archives[1]))
	}
	in, err := zip.NewReader(bytes.NewReader(archives[0]), int64(len(archives[0])))
	if err != nil {
		t.Fatal(err)
	}
	const vendored = "vendor/melmastoon.ghasi.io/"
	for _, file := range in.File {
		foreign := strings.HasPrefix(file.Name, vendored) && !strings.HasPrefix(file.Name, vendored+"bff-consumer/shared/")
		if strings.HasSuffix(file.Name, "_test.go") || foreign {
			t.Errorf("%s is packed", file.Name)
		}
	}
}
