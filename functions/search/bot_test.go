package search

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge/pow"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	googlebot    = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	botsEnforced = `{"botMode":"enforce","challenge":{"difficulty":6}}`
)

// sendFrom sends a request from an address with the headers of a browser. more adds or replaces
// headers.
func (h *harness) sendFrom(addr, method, path, body string, more ...string) *functest.Result {
	h.T.Helper()
	r := httptest.NewRequest(method, web.BasePath+path, strings.NewReader(body))
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(addr), 4711).String()
	for _, headers := range [][]string{{"Content-Type", "application/json", "User-Agent", functest.Firefox, "Accept", "*/*", "Accept-Language", "fa-AF"}, more} {
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return h.Send(r)
}

const guestAddr = "192.0.2.7"

// requireChallenge returns the challenge of an answer. It fails the test unless the answer is 429
// SUSPECTED_BOT with a single challenge.
func requireChallenge(t testing.TB, a *functest.Result) challenge.Offer {
	t.Helper()
	var body struct {
		Challenge struct{ Providers []challenge.Offer }
	}
	a.Decode(t, &body)
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT") || len(body.Challenge.Providers) != 1 {
		t.Fatalf(`got %d %s; want status 429, code ending with ".SUSPECTED_BOT", len(body.Challenge.Providers) = 1`, a.StatusCode, a.Text)
	}
	return body.Challenge.Providers[0]
}

func TestBotDetection_GooglebotNeedsGoogleAddress(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, botsEnforced)
	for range 15 { // the request rate does not matter
		for addr, served := range map[string]bool{"66.249.66.1": true, "2001:4860:4801:10::1": true, "203.0.113.9": false} {
			t.Run(addr, func(t *testing.T) {
				for _, a := range []*functest.Result{
					h.sendFrom(addr, "POST", "/search", h.requestBody("Kabul"), "User-Agent", googlebot),
					h.sendFrom(addr, "GET", "/facets?country=AF&locale=fa-AF", "", "User-Agent", googlebot),
				} {
					if served && a.StatusCode != 200 || !served && (a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT")) {
						t.Fatalf("got %d %s; want served = %t, else 429 SUSPECTED_BOT", a.StatusCode, a.Text, served)
					}
				}
			})
		}
	}
	if n := h.Count("bot_score_log WHERE verdict <> 'human'"); n == 0 || n > 2 {
		t.Errorf("got %d verdicts; want 1 or 2", n)
	}
}

func TestBotDetection_TwelveSearchesInTwoSecondsAreChallenged(t *testing.T) {
	t.Parallel()
	for name, sendsCookie := range map[string]bool{"with the cookie of the first answer": true, "without a cookie": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarnessWithFlags(t, botsEnforced)
			var headers []string
			for n := range 12 {
				a := h.sendFrom(guestAddr, "POST", "/search", h.requestBody("Kabul"), headers...)
				if refused := n == 11; refused != (a.StatusCode == 429) {
					t.Fatalf("search %d: got %d %s; want refused = %t", n+1, a.StatusCode, a.Text, refused)
				}
				if n == 0 && sendsCookie {
					headers = []string{"Cookie", "gms_id=" + a.SessionCookie()}
				}
				h.Advance(165 * time.Millisecond)
			}
			if n := h.Count("bot_score_log WHERE verdict = 'suspect' AND action_taken = 'challenge'"); n != 1 {
				t.Errorf("got %d verdicts; want 1", n)
			}
		})
	}
}

// The guest turns pages, moves the map and returns for an hour.
func TestBotDetection_HourOfBrowsingIsNotChallenged(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, botsEnforced)
	var headers []string
	for n, began := 0, h.Now(); h.Now().Sub(began) < time.Hour; n++ {
		for _, a := range []*functest.Result{
			h.sendFrom(guestAddr, "POST", "/search", h.requestBody([]string{"Kabul", "Herat", "Mazar"}[n%3]), headers...),
			h.sendFrom(guestAddr, "POST", "/search/map", h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.4,"swLng":69,"neLat":34.7,"neLng":69.4}`, `"occupancy"`, `"zoom":12,"occupancy"`), headers...),
			h.sendFrom(guestAddr, "GET", "/facets?country=AF&locale=fa-AF", ""),
		} {
			if a.StatusCode != 200 {
				t.Fatalf("after %v: got %d %s; want 200", h.Now().Sub(began), a.StatusCode, a.Text)
			}
			if cookie := a.SessionCookie(); cookie != "" {
				headers = []string{"Cookie", "gms_id=" + cookie}
			}
		}
		h.Advance(time.Duration(1+7*n%40) * time.Second)
	}
	if n := h.Count("bot_score_log"); n != 0 {
		t.Errorf("got %d verdicts; want 0", n)
	}
}

func TestBotDetection_SolvedChallengeIsServed(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, botsEnforced)
	calls := h.upstreams.Calls()
	curl := []string{"User-Agent", "curl/8.5.0"}
	facets := func(headers ...string) *functest.Result {
		return h.sendFrom(guestAddr, "GET", "/facets?country=AF&locale=fa-AF", "", append(headers, curl...)...)
	}
	offer := requireChallenge(t, h.sendFrom(guestAddr, "POST", "/search", h.requestBody("Kabul"), curl...))
	requireChallenge(t, facets())
	if h.upstreams.Calls() != calls {
		t.Errorf("refused requests made %d upstream calls; want 0", h.upstreams.Calls()-calls)
	}
	token := pow.Solve(offer.Challenge, offer.Difficulty)
	a := h.sendFrom(guestAddr, "POST", "/search", h.requestBody("Kabul"), append([]string{challenge.Header, token}, curl...)...)
	if a.StatusCode != 200 {
		t.Fatalf("got %d %s; want status 200", a.StatusCode, a.Text)
	}
	for range 2 { // /search by the session's remembered solution, /facets by the header alone
		h.Advance(25 * time.Minute)
		if again := h.sendFrom(guestAddr, "POST", "/search", h.requestBody("Kabul"), append([]string{"Cookie", "gms_id=" + a.SessionCookie()}, curl...)...); again.StatusCode != 200 {
			t.Errorf("got %d %s; want status 200", again.StatusCode, again.Text)
		}
		if a := facets(challenge.Header, token); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Cache-Control"), "public") {
			t.Errorf(`got %d %v; want status 200, Cache-Control beginning with "public"`, a.StatusCode, a.Header)
		}
	}
	requireChallenge(t, facets("Cookie", "gms_id="+a.SessionCookie()))
}

// dumpStores returns all keys and values of Redis and all rows of Postgres as text.
func (h *harness) dumpStores() (redis, postgres string) {
	h.T.Helper()
	ctx := context.Background()
	var b strings.Builder
	for _, key := range h.RDB.Keys(ctx, "*").Val() {
		b.WriteString(key + "\n")
		switch h.RDB.Type(ctx, key).Val() {
		case "string":
			b.WriteString(h.RDB.Get(ctx, key).Val())
		case "hash":
			fmt.Fprint(&b, h.RDB.HGetAll(ctx, key).Val())
		case "list":
			fmt.Fprint(&b, h.RDB.LRange(ctx, key, 0, -1).Val())
		case "zset":
			fmt.Fprint(&b, h.RDB.ZRange(ctx, key, 0, -1).Val())
		case "set":
			fmt.Fprint(&b, h.RDB.SMembers(ctx, key).Val())
		case "none": // the key has just expired
		default:
			h.T.Fatalf("%s: got a key of type %s, which dumpStores cannot read", key, h.RDB.Type(ctx, key).Val())
		}
	}
	tables, err := pgx.CollectRows(must(h.DB.Query(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'bff_consumer' AND table_type = 'BASE TABLE'")), pgx.RowTo[string])
	if err != nil || len(tables) < 5 {
		h.T.Fatalf("got tables %v, error %v; want at least 5 tables", tables, err)
	}
	var rows strings.Builder
	for _, table := range tables {
		var text string
		if err := h.DB.QueryRow(ctx, "SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM bff_consumer."+pgx.Identifier{table}.Sanitize()+" AS t").Scan(&text); err != nil {
			h.T.Fatal(err)
		}
		rows.WriteString(text)
	}
	return b.String(), rows.String()
}

func must(rows pgx.Rows, err error) pgx.Rows {
	if err != nil {
		panic(err)
	}
	return rows
}

func TestBotDetection_StoresAndLogContainNoClientData(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, `{"botMode":"enforce","limitsEnabled":true,"challenge":{"difficulty":6}}`)
	var secret []string
	statuses := map[int]int{}
	const requests = 1000
	for n := range requests {
		if n%100 == 0 {
			h.Advance(time.Minute)
		}
		addr := fmt.Sprintf("2001:db8:%x:%x::%x", 0xa000+n, 0xb000+n, 0xc000+n)
		if n%2 == 0 {
			addr = fmt.Sprintf("203.0.%d.%d", 100+n/250, 1+n%250)
		}
		agent := []string{"python-requests/2.32 c4n4ry%04d", functest.Firefox + " c4n4ry%04d", "c4n4ry%04d/1.0 (+http://c4n4ry.example)", "curl/8.5 c4n4ry%04d"}[n%4]
		token := []string{fmt.Sprintf("pow1.6.1795280400.test.c4n4ry%04dAAAAAAAAAAAA.7", n), fmt.Sprintf("a-recaptcha-c4n4ry%04d-token", n)}[n/2%2]
		headers := []string{"User-Agent", fmt.Sprintf(agent, n), challenge.Header, token, "X-Client-Screen", fmt.Sprintf("c4n4ry%04d", n)}
		for _, a := range []*functest.Result{
			h.sendFrom(addr, "POST", "/search", h.requestBody("Kabul"), headers...),
			h.sendFrom(addr, "GET", "/facets?country=AF&locale=fa-AF", "", headers...),
		} {
			statuses[a.StatusCode]++
			if strings.Contains(a.Text, "c4n4ry") {
				t.Fatalf("found a canary in %s", a.Text)
			}
		}
		secret = append(secret, strings.TrimSuffix(addr, fmt.Sprintf("::%x", 0xc000+n)))
	}
	redis, postgres := h.dumpStores()
	log := h.Log.String()
	if statuses[200] < 300 || statuses[429] < 900 || h.Count("bot_score_log") < 500 || strings.Count(redis, ":bot:cadence:") < 500 || strings.Count(log, "SUSPECTED_BOT") < 900 {
		t.Fatalf("got statuses %v, %d rows: too few requests left traces in the stores and the log", statuses, h.Count("bot_score_log"))
	}
	for where, text := range map[string]string{"Redis": redis, "Postgres": postgres, "log": log} {
		if at := strings.Index(text, "c4n4ry"); at >= 0 {
			t.Errorf("in %s: got %s; want no canary", where, text[max(0, at-80):min(len(text), at+80)])
		}
		for _, addr := range secret {
			if strings.Contains(text, addr) {
				t.Errorf("found %s in %s", addr, where)
			}
		}
	}
}
