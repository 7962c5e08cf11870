package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// isProblem reports whether a response is a problem with this status and code.
func isProblem(res *http.Response, answer map[string]any, status int, code string) bool {
	got, _ := answer["code"].(string)
	return res.StatusCode == status && strings.HasSuffix(got, "."+code) &&
		res.Header.Get("Content-Type") == "application/problem+json" && res.Header.Get("Cache-Control") == "no-store"
}

// mintHandoff searches, reads a hotel's page and mints a handoff. It returns the handoff and its
// token.
func mintHandoff(t *testing.T, s *server.Server) (handoff map[string]any, token string) {
	t.Helper()
	res, found := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul"))
	if res.StatusCode != http.StatusOK || len(res.Cookies()) == 0 {
		t.Fatalf("search: %d %v", res.StatusCode, found)
	}
	guest := "gms_id=" + res.Cookies()[0].Value
	hotel := found["listings"].([]any)[0].(map[string]any)
	property, tenant := hotel["propertyId"].(string), hotel["tenantId"].(string)

	res, page := servertest.Call(t, http.MethodGet, s.URL+web.BasePath+"/hotels/"+property, "")
	hint, _ := page["handoffHint"].(map[string]any)
	if res.StatusCode != http.StatusOK || hint["url"] == nil {
		t.Fatalf("detail: %d %v", res.StatusCode, page)
	}

	body := `{"tenantId":"` + tenant + `","propertyId":"` + property + `",` + strings.SplitN(servertest.SearchBody(""), ",", 3)[2]
	res, handoff = servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/handoff", body, "Cookie", guest, "Idempotency-Key", t.Name()+tenant)
	if res.StatusCode != http.StatusCreated {
		t.Fatalf("handoff: %d %v", res.StatusCode, handoff)
	}
	link, err := url.Parse(handoff["url"].(string))
	if err != nil || !strings.HasPrefix(link.String(), hint["url"].(string)+"?h=") {
		t.Fatalf("the handoff's link is %s, the page announced %v", link, hint)
	}
	return handoff, link.Query().Get("h")
}

func TestHandoff_SecondConsumeIsRejectedAndReported(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	handoff, token := mintHandoff(t, s)
	body := `{"token":"` + token + `"}`
	bootstrap := s.URL + "/_local/tenant/bootstrap"
	res, received := servertest.Call(t, http.MethodPost, bootstrap, body)
	if res.StatusCode != http.StatusOK || received["handoffId"] != handoff["handoffId"] || received["consumedAt"] == nil {
		t.Errorf("first consume: %d %v, want 200 with the handoff", res.StatusCode, received)
	}
	if early := servertest.TelemetryMessages(t, s, "bot_suspected.v1", 0); len(early) != 0 {
		t.Errorf("bot_suspected before the second consume: %v", early)
	}
	if res, answer := servertest.Call(t, http.MethodPost, bootstrap, body); !isProblem(res, answer, http.StatusConflict, "HANDOFF_REPLAYED") {
		t.Errorf("second consume: %d %v, want 409 HANDOFF_REPLAYED", res.StatusCode, answer)
	}
	messages := servertest.TelemetryMessages(t, s, "bot_suspected.v1", 1)
	if len(messages) != 1 {
		t.Fatalf("%d bot_suspected events, want 1", len(messages))
	}
	payload := messages[0]["data"].(map[string]any)["payload"].(map[string]any)
	if payload["guestSessionId"] != received["guestSessionId"] {
		t.Errorf("bot_suspected of another session: %v", payload)
	}

	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"another signature": {`{"token":"` + token[:len(token)-2] + `AA"}`, http.StatusUnauthorized, "HANDOFF_SIGNATURE_INVALID"},
		"not a token":       {`{"token":"garbage"}`, http.StatusUnauthorized, "HANDOFF_SIGNATURE_INVALID"},
		"empty token":       {`{"token":""}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"missing field":     {`{}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"unknown field":     {`{"token":"x","by":"me"}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"number":            {`{"token":7}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"not JSON":          {`h=` + token, http.StatusBadRequest, "MALFORMED_REQUEST"},
		"empty body":        {``, http.StatusBadRequest, "MALFORMED_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			if res, answer := servertest.Call(t, http.MethodPost, bootstrap, c.body); !isProblem(res, answer, c.status, c.code) {
				t.Errorf("%d %v, want %d %s", res.StatusCode, answer, c.status, c.code)
			}
		})
	}
	if res, answer := servertest.Call(t, http.MethodGet, bootstrap, ""); !isProblem(res, answer, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED") {
		t.Errorf("GET: %d %v, want 405 METHOD_NOT_ALLOWED", res.StatusCode, answer)
	}
	private := "/internal/handoff/" + handoff["handoffId"].(string) + "/consume"
	if res, answer := servertest.Call(t, http.MethodPost, s.URL+private, body); !isProblem(res, answer, http.StatusNotFound, "RESOURCE_NOT_FOUND") {
		t.Errorf("an internal route through the gateway: %d %v, want 404", res.StatusCode, answer)
	}
}

// The script of docs/tour.md runs as a reader pastes it, with the local default flags and with
// deployed ones.
func TestReadme_JourneyScriptSucceeds(t *testing.T) {
	script := servertest.TourScript(t, "A guest's journey")
	s := servertest.Start(t, servertest.StateDir(t))
	for _, flags := range []string{`{"limitsEnabled":null,"botMode":null}`, `{"botMode":"enforce"}`} {
		servertest.SetFlags(t, s, flags)
		servertest.RunJourney(t, s.URL, script)
	}
	reports := "/_local/telemetry?subject=bot_suspected.v1&since=0"
	_, answer := servertest.Call(t, http.MethodGet, s.URL+reports, "")
	if text := fmt.Sprint(answer); strings.Count(text, "handoff-replayed") != 2 || strings.Count(text, "actionTaken") != 2 {
		t.Errorf("bot_suspected events %s, want the two replays only", text)
	}
}

// The script of docs/tour.md about robots runs as a reader pastes it.
func TestReadme_ChallengeScriptSucceeds(t *testing.T) {
	script := servertest.TourScript(t, "Robots")
	s := servertest.Start(t, servertest.StateDir(t))
	servertest.SetFlags(t, s, `{"limitsEnabled":null,"botMode":null}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-u", "-c", script)
	cmd.Env = append(os.Environ(), "service="+s.URL)
	out, err := cmd.CombinedOutput()
	if want := "429 unsolved\n200 solved\n\"actionTaken\":\"challenge\"\n200 Googlebot from Google\n429 Googlebot from here\n"; err != nil || string(out) != want {
		t.Errorf("%v, output\n%swant\n%s", err, out, want)
	}
	if _, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/flags", ""); answer["botMode"] != "observe" {
		t.Errorf("botMode is %v after the script, want observe", answer["botMode"])
	}
}
