package challenge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge/pow"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const (
	suspectScore = 0.45
	botScore     = 0.85
)

var keys = redisclient.Keys{Env: "test"}

// requestServer makes the calls of a request. The header X-Score sets the score of the client,
// X-From its address.
type requestServer struct {
	service *challenge.Service
	rdb     redis.UniversalClient
	trips   *redistest.Counter
}

func newRequestServer(t testing.TB, provider challenge.Provider) *requestServer {
	t.Helper()
	ring, err := keyring.Parse("k2:Y2hhbGxlbmdlIGtleSB0d28sIGZvciB0ZXN0cyBvbmx5")
	if err != nil {
		t.Fatal(err)
	}
	d := &requestServer{service: challenge.New(keys, ring, provider, time.Now), rdb: redistest.New(t)}
	warm := d.rdb.Pipeline() // load the script, so that round trips are those of a warm server
	lua.SetUnlessCleared(t.Context(), warm, "warm", "warm:cleared", "up", time.Second)
	if err := lua.Exec(t.Context(), warm); err != nil {
		t.Fatal(err)
	}
	d.trips = redistest.Count(d.rdb)
	return d
}

func (d *requestServer) save(ctx context.Context, id string, p challenge.Proof) redis.Pipeliner {
	pipe := d.rdb.Pipeline()
	d.service.EnqueueSave(ctx, pipe, id, p)
	return pipe
}

func (d *requestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, sent := r.Context(), r.Header.Get(challenge.Header)
	client := challenge.Client{Fingerprint: "of " + r.Header.Get("User-Agent"), Address: "of " + r.Header.Get("X-From")}
	shared := strings.HasPrefix(r.URL.Path, "/facets")
	var id string
	var read *challenge.Pending
	if cookie, err := r.Cookie("gms_id"); err == nil && !shared {
		id = cookie.Value
		pipe := d.rdb.Pipeline()
		read = d.service.Enqueue(ctx, pipe, id)
		lua.Exec(ctx, pipe)
	}
	score := map[string]float64{"": 0.15, "suspect": 0.5, "bot": 0.95}[r.Header.Get("X-Score")]
	var proof challenge.Proof
	if score >= suspectScore {
		proof = d.service.Verify(ctx, read, id, sent, client)
		score += proof.Weight(score >= botScore)
	}
	switch {
	case score >= botScore:
		problem.Write(w, problem.Occurrence{}, challenge.Blocked())
		return
	case score >= suspectScore && !proof.Solved:
		problem.Write(w, problem.Occurrence{}, d.service.Problem(client, 8))
		return
	}
	if !shared {
		if id == "" {
			id = "gms_new"
		}
		lua.Exec(ctx, d.save(ctx, id, proof))
		http.SetCookie(w, &http.Cookie{Name: "gms_id", Value: id})
	}
	w.WriteHeader(http.StatusNoContent)
}

// call sends one request with additional headers, names and values.
func (d *requestServer) call(path string, more ...string) *http.Response {
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header.Set("User-Agent", "a phone")
	r.Header.Set("X-From", "home")
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result()
}

// verification returns the offers of a 429 response after checking the body against the API
// description.
func verification(t *testing.T, r *http.Response) []challenge.Offer {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 429 {
		t.Fatalf("status %d, error %v; want 429", r.StatusCode, err)
	}
	validateAgainstAPI(t, body)
	var p struct {
		Challenge struct {
			Providers []challenge.Offer `json:"providers"`
		} `json:"challenge"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	return p.Challenge.Providers
}

// loadAPI loads the API description once per process, because loading takes a fifth of a second.
var loadAPI = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("../../api/consumer.openapi.yaml")
})

// validateAgainstAPI checks the challenge in a problem body against the API description.
func validateAgainstAPI(t *testing.T, body []byte) {
	t.Helper()
	api, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	if c, ok := value.(map[string]any)["challenge"]; ok {
		if err := api.Components.Schemas["Challenge"].Value.VisitJSON(c); err != nil {
			t.Errorf("%s does not match the API description: %v", body, err)
		}
	}
}

// fakeProvider is a Provider that gives one token the score 0.9 and rejects all others.
type fakeProvider struct{}

const humanToken = "03A_of_somebody_who_moves_the_mouse"

func (fakeProvider) Verify(_ context.Context, token string) (challenge.Assessment, error) {
	if token == humanToken {
		return challenge.Assessment{Valid: true, Score: 0.9}, nil
	}
	return challenge.Assessment{Reason: "MALFORMED"}, nil
}

func (fakeProvider) Offer() *challenge.Offer {
	return &challenge.Offer{Kind: challenge.Recaptcha, SiteKey: "6Lc", Action: "guest_request"}
}

func TestService_RequestFlow(t *testing.T) {
	d := newRequestServer(t, fakeProvider{})
	step := func(name string, want, trips int, r *http.Response) *http.Response {
		t.Helper()
		if n := d.trips.TakeCount(); r.StatusCode != want || n != trips {
			t.Errorf("%s: %d in %d round trips, want %d in %d", name, r.StatusCode, n, want, trips)
		}
		return r
	}
	cookie := []string{"Cookie", "gms_id=gms_new"}
	withCookie := func(more ...string) []string { return append(append([]string{}, cookie...), more...) }
	step("a guest", 204, 0, d.call("/search"))
	step("a guest with an invalid token", 204, 1, d.call("/search", withCookie(challenge.Header, "junk")...))
	offered := verification(t, step("a suspect", 429, 0, d.call("/search", "X-Score", "suspect")))
	if len(offered) != 2 || offered[0].Kind != challenge.Recaptcha || offered[1].Kind != challenge.ProofOfWork {
		t.Fatalf("offers %+v, want reCAPTCHA and a puzzle", offered)
	}
	solved := pow.Solve(offered[1].Challenge, offered[1].Difficulty)
	step("a shared route with the solution", 204, 0, d.call("/facets", "X-Score", "suspect", challenge.Header, solved))
	step("the shared route again", 204, 0, d.call("/facets", "X-Score", "suspect", challenge.Header, solved))
	verification(t, step("a shared route without a solution", 429, 0, d.call("/facets", "X-Score", "suspect")))
	verification(t, step("with another client's solution", 429, 0, d.call("/facets", "X-Score", "suspect", "X-From", "a farm", challenge.Header, solved)))
	step("with the solution", 204, 1, d.call("/search", "X-Score", "suspect", challenge.Header, solved))
	step("with the cookie alone", 204, 1, d.call("/search", withCookie("X-Score", "suspect")...))
	verification(t, step("with another cookie", 429, 1, d.call("/search", "Cookie", "gms_id=gms_other", "X-Score", "suspect")))
	if offered := verification(t, step("a bot with a solution", 429, 1, d.call("/search", withCookie("X-Score", "bot", challenge.Header, solved)...))); offered != nil {
		t.Errorf("offers %+v, want none", offered)
	}
	step("a bot with a good reCAPTCHA token", 204, 2, d.call("/search", withCookie("X-Score", "bot", challenge.Header, humanToken)...))
	step("the bot with the stored proof", 204, 1, d.call("/search", withCookie("X-Score", "bot")...))
	d.rdb.Del(t.Context(), keys.SessionPart("gms_new", "challenge")) // as a clear does
	d.trips.TakeCount()
	verification(t, step("after a clear", 429, 1, d.call("/search", withCookie("X-Score", "suspect")...)))
}

// documentedExample returns the JavaScript of docs/challenge.md.
func documentedExample(t *testing.T) []byte {
	t.Helper()
	doc, err := os.ReadFile("../../docs/challenge.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(doc, []byte("```js\n"))
	code, _, found := bytes.Cut(rest, []byte("```"))
	if !found {
		t.Fatal("docs/challenge.md shows no JavaScript")
	}
	return code
}

const exampleDriver = `
const {vectors, url} = JSON.parse(process.argv[2])
for (const v of vectors.solve) {
  const token = await solve(v)
  if (token !== v.token) throw new Error(token + " for " + v.token)
}
const init = {method: "POST", headers: {"X-Score": "suspect", "X-From": "home"}}
const first = await fetch(url, init), second = await ask(url, init)
if (first.status !== 429 || second.status !== 204) throw new Error(first.status + " and " + second.status)
const blocked = await ask(url, {...init, headers: {"X-Score": "bot"}})
if (blocked.status !== 429 || !(await blocked.json()).code.endsWith("SUSPECTED_BOT")) throw new Error("no readable problem SUSPECTED_BOT")
console.log("solved")
`

func TestService_DocumentedJavaScriptWorks(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	server := httptest.NewServer(newRequestServer(t, fakeProvider{}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "example.mjs")
	if err := os.WriteFile(file, append(documentedExample(t), exampleDriver...), 0o600); err != nil {
		t.Fatal(err)
	}
	vectors, err := os.ReadFile("pow/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{"vectors": json.RawMessage(vectors), "url": server.URL + "/search"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), node, file, string(input)).CombinedOutput(); err != nil || string(out) != "solved\n" {
		t.Errorf("%v: %s", err, out)
	}
}
