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

// journeyState goes through the packed functions, one after the other. What one answers, the next is asked with.
type journeyState struct {
	env                      map[string]string // of every function
	issuer                   *oidctest.Issuer
	cookie, property, tenant string
	token                    string // of the handoff
}

// journeySteps are every folder, in the order of the journey: one of its entry points, and what is asked of it.
func journeySteps() []journeyStep {
	return []journeyStep{
		{"migrate", "Migrate", func(t *testing.T, way *journeyState, url string) {
			res, report := servertest.Call(t, http.MethodPost, url+"/internal/migrate", "")
			if newest, _ := report["newest"].(string); res.StatusCode != http.StatusOK || !strings.HasSuffix(newest, ".sql") {
				t.Errorf("%d %v", res.StatusCode, report)
			}
		}},
		{"search", "Search", func(t *testing.T, way *journeyState, url string) {
			res, found := servertest.Call(t, http.MethodPost, url+web.BasePath+"/search", servertest.SearchBody("Kabul"))
			list, _ := found["listings"].([]any)
			if res.StatusCode != http.StatusOK || len(list) == 0 || len(res.Cookies()) == 0 {
				t.Fatalf("%d %v", res.StatusCode, found)
			}
			way.cookie = "gms_id=" + res.Cookies()[0].Value
			hotel := list[0].(map[string]any)
			way.property, way.tenant = hotel["propertyId"].(string), hotel["tenantId"].(string)
		}},
		{"detail", "Detail", func(t *testing.T, way *journeyState, url string) {
			res, page := servertest.Call(t, http.MethodGet, url+web.BasePath+"/hotels/"+way.property, "")
			hotel, _ := page["property"].(map[string]any)
			if res.StatusCode != http.StatusOK || hotel["propertyId"] != way.property {
				t.Errorf("%d %v", res.StatusCode, page)
			}
		}},
		{"wishlist", "WishlistAdd", callRoute("WishlistAdd")},
		{"telemetry", "TelemetryClick", callRoute("TelemetryClick")},
		{"session", "Session", callRoute("Session")},
		{"handoff", "Handoff", func(t *testing.T, way *journeyState, to string) {
			res, answer := servertest.Call(t, http.MethodPost, to+web.BasePath+"/handoff", servertest.RouteRequests(way.property, way.tenant)["Handoff"].Body,
				"Cookie", way.cookie, "Idempotency-Key", "packed-"+way.property)
			link, _ := answer["url"].(string)
			at, err := url.Parse(link)
			if res.StatusCode != http.StatusCreated || err != nil {
				t.Fatalf("%d %v", res.StatusCode, answer)
			}
			way.token = at.Query().Get("h")
		}},
		{"consume", "Consume", func(t *testing.T, way *journeyState, url string) {
			keys, err := handoff.ParseKeys(way.env["HANDOFF_KEYS"])
			if err != nil {
				t.Fatal(err)
			}
			answer, err := tenantstub.New(url, keys, way.issuer, time.Now).Bootstrap(t.Context(), way.token)
			if err != nil || answer.Status != http.StatusOK {
				t.Fatalf("%+v, %v", answer, err)
			}
		}},
		{"invalidate", "TenantReinstated", func(t *testing.T, way *journeyState, url string) {
			const subject = "melmastoon.tenant.reinstated.v1"
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			event := `{"envelope":{"eventId":"` + id.New(id.Event, time.Now()) + `","subject":"` + subject + `","version":1,"occurredAt":"` + now +
				`","publishedAt":"` + now + `","producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},"payload":{"tenantId":"` +
				way.tenant + `","reinstatedAt":"` + now + `"}}`
			res, answer := servertest.Call(t, http.MethodPost, url+"/internal/events/tenant-reinstated", servertest.PushBody(event))
			if res.StatusCode != http.StatusOK || answer["outcome"] != "done" {
				t.Errorf("%d %v", res.StatusCode, answer)
			}
		}},
		{"relay", "Relay", func(t *testing.T, way *journeyState, url string) {
			res, report := servertest.Call(t, http.MethodPost, url+"/internal/jobs/relay", servertest.PushBody(`{"once":true}`))
			if res.StatusCode != http.StatusOK || report["depth"] != 0.0 {
				t.Errorf("%d %v", res.StatusCode, report)
			}
		}},
		{"sweep", "SweepInbox", func(t *testing.T, way *journeyState, url string) {
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

// callRoute asks a public route as the table of all routes does.
func callRoute(function string) func(*testing.T, *journeyState, string) {
	return func(t *testing.T, way *journeyState, url string) {
		v, method := servertest.RouteRequests(way.property, way.tenant)[function], http.MethodPost
		if v.Body == "" {
			method = http.MethodGet
		}
		if res, answer := servertest.Call(t, method, url+web.BasePath+v.Path, v.Body, "Cookie", way.cookie); res.StatusCode >= 300 {
			t.Errorf("%d %v", res.StatusCode, answer)
		}
	}
}

// TestPack_EachArchiveBuildsOfflineAndServes packs every folder, builds each archive as the platform does, and takes a guest through the
// programs: each in a process of its own that knows nothing but its settings.
func TestPack_EachArchiveBuildsOfflineAndServes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every function")
	}
	state := servertest.StateDir(t)
	servertest.Start(t, state)
	way := &journeyState{env: servertest.FunctionEnv(t, state)}
	var err error
	if way.issuer, err = oidctest.New("packed"); err != nil {
		t.Fatal(err)
	}
	way.env["CALLER_KEYS"] = filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(way.env["CALLER_KEYS"], way.issuer.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	folders, err := repository.FunctionFolders(servertest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	binaries := t.TempDir()
	packFolders(t, pack.All, t.TempDir(), binaries)
	for _, s := range journeySteps() {
		folders = slices.DeleteFunc(folders, func(f string) bool { return f == s.folder })
		if !t.Run(s.folder, func(t *testing.T) {
			dir := filepath.Join(binaries, s.folder)
			s.run(t, way, startProgram(t, filepath.Join(dir, "main"), dir, s.target, way.env))
		}) {
			return // the next would be asked with what this one did not answer
		}
	}
	if len(folders) > 0 {
		t.Errorf("never asked: %v", folders)
	}
}

// startProgram runs a program until the test ends, with these settings and no other, and returns its URL when it listens.
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

// packFolders writes the archive of a folder, or of all, below out, and builds it below built unless built is
// empty.
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

func TestPack_IsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("vendors")
	}
	var archives [2]string
	for i := range archives {
		dir := t.TempDir()
		packFolders(t, "search", dir, "")
		archive, err := os.ReadFile(filepath.Join(dir, "search.zip"))
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = string(archive)
	}
	if archives[0] != archives[1] {
		t.Errorf("%d and %d bytes that differ", len(archives[0]), len(archives[1]))
	}
	in, err := zip.NewReader(strings.NewReader(archives[0]), int64(len(archives[0])))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range in.File {
		ours := strings.HasPrefix(file.Name, "vendor/melmastoon.ghasi.io/") && !strings.HasPrefix(file.Name, "vendor/melmastoon.ghasi.io/bff-consumer/shared/")
		if strings.HasSuffix(file.Name, "_test.go") || ours {
			t.Errorf("%s is packed", file.Name)
		}
	}
}
