package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// publishPlatformEvent publishes a platform event and waits until its delivery has ended. It
// returns the server's record of the event.
func publishPlatformEvent(t *testing.T, s *server.Server, body string) (outcome map[string]any) {
	t.Helper()
	res, published := servertest.Call(t, http.MethodPost, s.URL+"/_local/events", body)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("POST /_local/events: %d %v", res.StatusCode, published)
	}
	servertest.Eventually(t, "an event is delivered", func() bool {
		_, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/events", "")
		for _, e := range answer["events"].([]any) {
			e := e.(map[string]any)
			if e["messageId"] == published["messageId"] && e["state"] != string(pubsub.Waiting) {
				outcome = e
			}
		}
		return outcome != nil
	})
	return outcome
}

func TestPushSubscriptions_EachHasItsFunction(t *testing.T) {
	operations, err := gateway.Operations(filepath.Join("..", "api", "internal.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]string{} // by function
	for _, op := range operations {
		// called by tenants and by the deployment, not by Pub/Sub
		if op.Folder != "consume" && op.Folder != "migrate" {
			methods[op.Function] = op.Method
		}
	}
	for _, s := range pubsub.PushSubscriptions() {
		if methods[s.Function] != http.MethodPost {
			t.Errorf("%s pushes to %s, which the API document does not have as POST", s.Name, s.Function)
		}
		delete(methods, s.Function)
	}
	if len(methods) > 0 {
		t.Errorf("functions without a subscription: %v", methods)
	}
}

func TestSessionEvents_ArriveInOrderWithoutManualRelay(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	res, _ := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul"))
	guest := "gms_id=" + res.Cookies()[0].Value
	locales := []string{"fr", "ps-AF", "en", "fa-AF", "ru"}
	for i, locale := range append(locales, locales...) {
		servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/session/locale", `{"locale":"`+locale+`"}`, "Cookie", guest)
		servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/session/currency", `{"currency":"`+[]string{"EUR", "AFN"}[i%2]+`"}`, "Cookie", guest)
	}
	var subjects, changes []string
	// the scheduler runs the relay; the test does not
	servertest.Eventually(t, "all events are published", func() bool {
		_, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/telemetry", "")
		subjects, changes = nil, nil
		for _, m := range answer["messages"].([]any) {
			m := m.(map[string]any)
			envelope, payload := m["data"].(map[string]any)["envelope"].(map[string]any), m["data"].(map[string]any)["payload"].(map[string]any)
			if envelope["publishedAt"] == nil || envelope["eventId"] != m["id"] || envelope["sessionId"] != m["orderingKey"] {
				t.Errorf("envelope and message attributes differ: %v", m)
			}
			subjects = append(subjects, strings.TrimPrefix(m["subject"].(string), "melmastoon.bff.consumer."))
			if locale, ok := payload["newLocale"].(string); ok {
				changes = append(changes, locale)
			}
		}
		return len(subjects) >= 1+2*len(locales)*2
	})
	if want := append(locales, locales...); !slices.Equal(changes, want) {
		t.Errorf("locale changes arrived as %v, want %v", changes, want)
	}
	for i, subject := range subjects[len(subjects)-4*len(locales):] {
		if want := []string{"locale.changed.v1", "currency.changed.v1"}[i%2]; subject != want {
			t.Errorf("event %d is %s, want %s: %v", i, subject, want, subjects)
			break
		}
	}
	if subjects[0] != "session.started.v1" {
		t.Errorf("the first event is %s, want session.started.v1", subjects[0])
	}
}

func TestTenantSuspendedEvent_HidesTenantUntilReinstated(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	cards := func(tenant string) (n int, guest string, hotel map[string]any) {
		res, found := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul"))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%d %v", res.StatusCode, found)
		}
		for _, l := range found["listings"].([]any) {
			l := l.(map[string]any)
			if tenant == "" || l["tenantId"] == tenant {
				n, hotel = n+1, l
			}
		}
		for _, c := range res.Cookies() {
			guest = "gms_id=" + c.Value
		}
		return n, guest, hotel
	}
	_, guest, hotel := cards("")
	tenant := hotel["tenantId"].(string)
	before, _, _ := cards(tenant)
	mint := func(key string) int {
		body := `{"tenantId":"` + tenant + `","propertyId":"` + hotel["propertyId"].(string) + `",` + strings.SplitN(servertest.SearchBody(""), ",", 3)[2]
		res, _ := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/handoff", body, "Cookie", guest, "Idempotency-Key", key)
		return res.StatusCode
	}
	now := time.Now().UTC()
	publish := func(change string, at time.Time) {
		t.Helper()
		when := `"` + change + `At":"` + timestamp.Format(at) + `"`
		e := publishPlatformEvent(t, s, `{"subject":"melmastoon.tenant.`+change+`.v1","payload":{"tenantId":"`+tenant+`","reason":"billing-overdue",`+when+`}}`)
		if e["state"] != string(pubsub.Delivered) || e["attempts"] != 1.0 || e["outcome"].(map[string]any)["status"] != 200.0 {
			t.Errorf("%v", e)
		}
	}
	publish("suspended", now)
	if n, _, _ := cards(tenant); n != 0 {
		t.Errorf("%d cards of a suspended tenant, want 0", n)
	}
	if status := mint("while-suspended"); status != http.StatusForbidden {
		t.Errorf("handoff to a suspended tenant: %d, want 403", status)
	}
	publish("reinstated", now.Add(-time.Minute)) // older than the suspension: no effect
	if n, _, _ := cards(tenant); n != 0 {
		t.Errorf("%d cards after an older reinstatement, want 0", n)
	}
	publish("reinstated", now.Add(time.Second))
	servertest.Eventually(t, "the tenant's hotels are shown again", func() bool { n, _, _ := cards(tenant); return n == before })
	if status := mint("when-back"); status != http.StatusCreated {
		t.Errorf("handoff to a reinstated tenant: %d, want 201", status)
	}
	if e := publishPlatformEvent(t, s, `{"subject":"melmastoon.theme.published.v1","raw":"no event"}`); e["state"] != string(pubsub.Delivered) {
		t.Errorf("an event that is not JSON: %v, want delivered (quarantined)", e)
	}
}

func TestThemePublishedEvent_InvalidatesOnlyThatTenant(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	search := func(city string) (cards []map[string]any) {
		_, found := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody(city))
		for _, l := range found["listings"].([]any) {
			cards = append(cards, l.(map[string]any))
		}
		return cards
	}
	detail := func(card map[string]any) (color, cached, body string) {
		res, hotel := servertest.Call(t, http.MethodGet, s.URL+web.BasePath+"/hotels/"+card["propertyId"].(string)+"?locale=en&currency=USD", "")
		text, err := json.Marshal(hotel)
		if err != nil {
			t.Fatal(err)
		}
		return hotel["brandPeek"].(map[string]any)["primaryColor"].(string), res.Header.Get("X-Cache"), string(text)
	}
	mine := search("Kabul")[0]
	tenant := mine["tenantId"].(string)
	old, _, _ := detail(mine)
	// hotels whose pages do not mention the tenant, not among similar hotels either
	var others []map[string]any
	for _, card := range slices.Concat(search("Kabul"), search("Herat")) {
		if _, _, body := detail(card); !strings.Contains(body, tenant) {
			others = append(others, card)
		}
	}
	if len(others) < 2 {
		t.Fatalf("%d hotels do not mention the tenant, want at least 2", len(others))
	}
	e := publishPlatformEvent(t, s, `{"subject":"melmastoon.theme.published.v1","payload":{"tenantId":"`+tenant+
		`","themeId":"thm_01H8YN7QV4D8KZ4F8Y5CK4MV3D","publishedVersion":"thv_01H8YN7QV4D8KZ4F8Y5CK4MV3D","publishedAt":"2026-11-20T10:00:00.000Z"}}`)
	if e["state"] != string(pubsub.Delivered) || e["outcome"].(map[string]any)["status"] != 200.0 {
		t.Fatalf("%v", e)
	}
	color, cached, _ := detail(mine)
	if color == old || cached != "MISS" {
		t.Errorf("color %s, before the event %s; cache %s, want MISS", color, old, cached)
	}
	for _, card := range others {
		if _, cached, _ := detail(card); cached != "HIT" {
			t.Errorf("another tenant's page: cache %s, want HIT", cached)
		}
	}
	for _, card := range search("Kabul") {
		if shown := card["brandPeek"].(map[string]any)["primaryColor"]; card["tenantId"] == tenant && shown != color {
			t.Errorf("the list shows color %v, the hotel's page %s", shown, color)
		}
	}
}

func TestThemePublishedEvent_RedisDownEndsInDeadLetterTopic(t *testing.T) {
	redis, err := localstores.NewProxy(redistest.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	for _, name := range []string{"DATABASE_URL", "PUBSUB_EMULATOR_HOST", "PUBSUB_PROJECT"} {
		t.Setenv(name, "")
	}
	t.Setenv("REDIS_ADDR", redis.Addr)
	shortBackoff := pubsub.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}
	s, err := server.Start(t.Context(), server.Options{Root: "..", State: servertest.StateDir(t), Out: io.Discard, Backoff: shortBackoff})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	event := `{"subject":"melmastoon.theme.published.v1","payload":{"tenantId":"tnt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT","themeId":"thm_01H8YN7Q2P7GZ4F8Y5CK4MV3DT",` +
		`"publishedVersion":"thv_01H8YN7Q2P7GZ4F8Y5CK4MV3DT","publishedAt":"2026-04-23T09:14:22.041Z"}}`
	redis.Break()
	e := publishPlatformEvent(t, s, event)
	if outcome := e["outcome"].(map[string]any); e["state"] != string(pubsub.DeadLettered) || e["attempts"] != 5.0 ||
		e["deadLetterTopic"] != "bff-consumer.theme.published.v1.dlq" || outcome["status"] != 503.0 && outcome["status"] != 500.0 {
		t.Errorf("%v", e)
	}
	redis.Heal()
	servertest.Eventually(t, "the event is delivered after Redis is back", func() bool { return publishPlatformEvent(t, s, event)["state"] == string(pubsub.Delivered) })
}

func TestSweepJobs_RunByAPIAndInSeparateProcess(t *testing.T) {
	dir := servertest.StateDir(t)
	s := servertest.Start(t, dir)
	for _, j := range pubsub.Jobs() {
		if j.Name == "relay" {
			continue
		}
		for _, body := range []string{`{"dryRun":true}`, `{}`} {
			res, answer := servertest.Call(t, http.MethodPost, s.URL+"/_local/jobs/"+j.Name, body)
			report, _ := answer["report"].(map[string]any)
			if res.StatusCode != http.StatusOK || answer["status"] != "ok" || report["dryRun"] != strings.Contains(body, "true") || report["removed"] != 0.0 {
				t.Errorf("%s %s: %d %v", j.Name, body, res.StatusCode, answer)
			}
		}
	}
	_, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/jobs", "")
	for _, j := range answer["jobs"].([]any) {
		if j := j.(map[string]any); j["job"] != "relay" && j["lastRun"].(map[string]any)["status"] != "ok" || j["startedAt"] == nil {
			t.Errorf("%v", j)
		}
	}
	for folder, path := range map[string]string{
		"sweep": "/internal/jobs/sweep-inbox", "invalidate": "/internal/events/theme-published", "relay": "",
	} {
		ctx, stop := context.WithCancel(t.Context())
		ready := &lineWriter{done: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- server.RunFolder(ctx, server.Options{Root: "..", State: dir, Out: ready}, folder) }()
		select {
		case <-ready.done:
		case err := <-ended:
			t.Fatalf("%s: %v", folder, err)
		}
		url := strings.Fields(ready.text.String())[1]
		if path != "" {
			res, answer := servertest.Call(t, http.MethodPost, url+path, `{"message":{"messageId":"1","data":"e30="}}`)
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %v", folder, res.StatusCode, answer)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

func TestStart_UsesPubSubEmulatorFromEnvironment(t *testing.T) {
	b, err := pubsub.OpenBroker(t.Context(), pubsub.BrokerOptions{Project: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dir := servertest.StateDir(t)
	t.Setenv("PUBSUB_EMULATOR_HOST", b.Host)
	t.Setenv("PUBSUB_PROJECT", "other")
	for _, name := range []string{"DATABASE_URL", "REDIS_ADDR"} {
		t.Setenv(name, "")
	}
	s, err := server.Start(t.Context(), server.Options{Root: "..", State: dir, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/healthz", ""); answer["parts"].(map[string]any)["pubsub"] != "ok" {
		t.Errorf("%v", answer)
	}
	if e := publishPlatformEvent(t, s, `{"subject":"melmastoon.theme.published.v1","raw":"{}"}`); e["state"] != string(pubsub.Delivered) {
		t.Errorf("%v", e)
	}
	b.Close()
	if res, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/healthz", ""); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("healthz without the broker: %v, want 503", answer)
	}
	if res, answer := servertest.Call(t, http.MethodPost, s.URL+"/_local/events", `{"subject":"melmastoon.theme.published.v1","payload":{}}`); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("publish without the broker: %d %v, want 503", res.StatusCode, answer)
	}
}
