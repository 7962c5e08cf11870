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

// isProblem reports whether an answer is a problem of that status and code.
func isProblem(res *http.Response, answer map[string]any, status int, code string) bool {
	said, _ := answer["code"].(string)
	return res.StatusCode == status && strings.HasSuffix(said, "."+code) &&
		res.Header.Get("Content-Type") == "application/problem+json" && res.Header.Get("Cache-Control") == "no-store"
}

// mintHandoff searches, looks at a hotel and leaves for its booking page; it returns the handoff and its token.
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
		t.Fatalf("the guest goes to %s, the page promised %v", link, hint)
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
		t.Errorf("%d %v", res.StatusCode, received)
	}
	if early := servertest.TelemetryMessages(t, s, "bot_suspected.v1", 0); len(early) != 0 {
		t.Errorf("suspected before the second use: %v", early)
	}
	if res, answer := servertest.Call(t, http.MethodPost, bootstrap, body); !isProblem(res, answer, http.StatusConflict, "HANDOFF_REPLAYED") {
		t.Errorf("a second use: %d %v", res.StatusCode, answer)
	}
	messages := servertest.TelemetryMessages(t, s, "bot_suspected.v1", 1)
	if len(messages) != 1 {
		t.Fatalf("%d suspicions", len(messages))
	}
	payload := messages[0]["data"].(map[string]any)["payload"].(map[string]any)
	if payload["guestSessionId"] != received["guestSessionId"] {
		t.Errorf("suspected: %v", payload)
	}

	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"another signature": {`{"token":"` + token[:len(token)-2] + `AA"}`, http.StatusUnauthorized, "HANDOFF_SIGNATURE_INVALID"},
		"no token at all":   {`{"token":"garbage"}`, http.StatusUnauthorized, "HANDOFF_SIGNATURE_INVALID"},
		"an empty token":    {`{"token":""}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"no member":         {`{}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"a member too many": {`{"token":"x","by":"me"}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"a number":          {`{"token":7}`, http.StatusUnprocessableEntity, "VALIDATION_FAILED"},
		"not JSON":          {`h=` + token, http.StatusBadRequest, "MALFORMED_REQUEST"},
		"nothing":           {``, http.StatusBadRequest, "MALFORMED_REQUEST"},
	} {
		if res, answer := servertest.Call(t, http.MethodPost, bootstrap, c.body); !isProblem(res, answer, c.status, c.code) {
			t.Errorf("%s: %d %v", name, res.StatusCode, answer)
		}
	}
	if res, answer := servertest.Call(t, http.MethodGet, bootstrap, ""); !isProblem(res, answer, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED") {
		t.Errorf("%d %v", res.StatusCode, answer)
	}
	private := "/internal/handoff/" + handoff["handoffId"].(string) + "/consume"
	if res, answer := servertest.Call(t, http.MethodPost, s.URL+private, body); !isProblem(res, answer, http.StatusNotFound, "RESOURCE_NOT_FOUND") {
		t.Errorf("the gateway has a private door: %d %v", res.StatusCode, answer)
	}
}

// The journey of the README, as a person pastes it.
func TestReadme_JourneyScriptSucceeds(t *testing.T) {
	script := servertest.TourScript(t, "A guest's journey")
	s := servertest.Start(t, servertest.StateDir(t))
	for _, flags := range []string{`{"limitsEnabled":null,"botMode":null}`, `{"botMode":"enforce"}`} { // a person's own system; what is deployed
		servertest.SetFlags(t, s, flags)
		servertest.RunJourney(t, s.URL, script) // the second guest is told of what became of the second handoff
	}
	reports := "/_local/telemetry?subject=bot_suspected.v1&since=0"
	_, answer := servertest.Call(t, http.MethodGet, s.URL+reports, "")
	if told := fmt.Sprint(answer); strings.Count(told, "handoff-replayed") != 2 || strings.Count(told, "actionTaken") != 2 {
		t.Errorf("more is told than the two replays: %s", told)
	}
}

// What the README says of robots, as a person pastes it.
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
		t.Errorf("%v\n%s", err, out)
	}
	if _, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/flags", ""); answer["botMode"] != "observe" {
		t.Errorf("%v", answer)
	}
}
