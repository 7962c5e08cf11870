package multiprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// internalFunctions returns the internal functions except Migrate, which a deployment calls before
// the rollout.
func internalFunctions(t *testing.T) (all []*deployedFunction) {
	t.Helper()
	operations, err := gateway.Operations(filepath.Join(servertest.Root(t), "api", "internal.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	payloads := map[string]string{ // the tenant has no hotels, so that guests see no effect
		"ThemePublished":   `"themeId":"thm_1","publishedVersion":"thv_1","publishedAt":%q`,
		"ListingIndexed":   `"propertyId":"ppt_00000000000000000000000042","geoCell":"h3:8a283082aa67fff","indexedAt":%q`,
		"TenantSuspended":  `"reason":"billing-overdue","suspendedAt":%q`,
		"TenantReinstated": `"reinstatedAt":%q`,
	}
	for _, op := range operations {
		d := &deployedFunction{op: op, request: servertest.RouteRequest{Path: op.Path}}
		switch payload, event := payloads[op.Function]; {
		case op.Function == "Migrate":
			continue
		case event:
			d.newPush = func() string { return servertest.PushBody(newPlatformEvent(op.Function, payload)) }
		case op.Function == "Relay": // publishes the outbox once; a scheduled run goes on for a minute
			d.newPush = func() string { return servertest.PushBody(`{"once":true}`) }
		default:
			d.newPush = func() string { return servertest.PushBody(`{}`) }
		}
		all = append(all, d)
	}
	return all
}

// newPlatformEvent returns a new platform event for a function.
func newPlatformEvent(function, payload string) string {
	now := time.Now()
	stamp := timestamp.Format(now.UTC())
	subject := map[string]string{
		"ThemePublished": "theme.published.v1", "ListingIndexed": "search_aggregation.listing.indexed.v1",
		"TenantSuspended": "tenant.suspended.v1", "TenantReinstated": "tenant.reinstated.v1",
	}[function]
	return fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":"melmastoon.%s","version":1,"occurredAt":%q,"publishedAt":%q,"producer":"p",`+
		`"tenantId":null,"requestId":"r","traceId":"t"},"payload":{"tenantId":"tnt_00000000000000000000000042",`+payload+`}}`,
		id.New(id.Event, now), subject, stamp, stamp, stamp)
}

// newTenantBFF returns a tenant's BFF that consumes handoffs at the current process of Consume.
func newTenantBFF(t *testing.T, private []*deployedFunction, state string, env map[string]string) *tenantstub.BFF {
	t.Helper()
	google, err := oidctest.New("of-the-rollout")
	if err != nil {
		t.Fatal(err)
	}
	keySet := filepath.Join(state, "keys-of-the-rollout.json")
	if err := os.WriteFile(keySet, google.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	env["CALLER_KEYS"] = keySet
	keys, err := handoff.ParseKeys(env["HANDOFF_KEYS"])
	if err != nil {
		t.Fatal(err)
	}
	consume := private[slices.IndexFunc(private, func(d *deployedFunction) bool { return d.op.Function == "Consume" })]
	consumeProxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := consume.assign()
		defer to.markSent()
		at, _ := url.Parse(to.instance.url)
		proxy := httputil.NewSingleHostReverseProxy(at)
		proxy.Transport = to.instance.client.Transport
		proxy.ServeHTTP(w, r.WithContext(to.withTrace(r.Context())))
	}))
	t.Cleanup(consumeProxy.Close)
	return tenantstub.New(consumeProxy.URL, keys, google, time.Now)
}

// keepToken stores the token of a handoff response for consumeTokens.
func (l *loadGenerator) keepToken(answer []byte) error {
	var handoff struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(answer, &handoff); err != nil {
		return err
	}
	_, token, _ := strings.Cut(handoff.URL, "?h=")
	l.locked(func() { l.tokens = append(l.tokens, token) })
	return nil
}

// sendInternal sends a request to an internal function: a tenant's consume to Consume, a push to
// the others.
func (l *loadGenerator) sendInternal(ctx context.Context, d *deployedFunction, bff *tenantstub.BFF) {
	if d.op.Function != "Consume" {
		l.send(ctx, d)
		return
	}
	l.consumeTokens(ctx, bff)
}

// consumeTokens consumes every handoff minted so far.
func (l *loadGenerator) consumeTokens(ctx context.Context, bff *tenantstub.BFF) {
	var tokens []string
	l.locked(func() { tokens, l.tokens = l.tokens, nil })
	for _, token := range tokens {
		l.requests.Add(1)
		l.wg.Go(func() {
			answer, err := bff.Bootstrap(ctx, token)
			l.locked(func() {
				if err != nil {
					l.failures = append(l.failures, "Consume: "+err.Error())
					return
				}
				l.statuses[answer.Status]++
				if answer.Status != http.StatusOK {
					l.failures = append(l.failures, fmt.Sprintf("Consume: %d %s", answer.Status, answer.Body))
				}
			})
		})
	}
}

// checkAllPublished compares the arrived messages with the outbox: each row has been published and
// has arrived. No platform event may be quarantined.
func checkAllPublished(t *testing.T, s *server.Server, database string) {
	t.Helper()
	servertest.TelemetryMessages(t, s, "", 0) // publishes all committed events
	arrived := map[string]bool{}
	for since, more := "", true; more; {
		_, answer := servertest.Call(t, http.MethodGet, s.URL+"/_local/telemetry?since="+since, "")
		messages := answer["messages"].([]any)
		for _, m := range messages {
			arrived[m.(map[string]any)["id"].(string)] = true
		}
		since, more = fmt.Sprint(answer["cursor"]), len(messages) > 0
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, _ := conn.Query(t.Context(), "SELECT id::text, published_at IS NOT NULL FROM bff_consumer.outbox")
	var row string
	var published bool
	events := 0
	if _, err := pgx.ForEachRow(rows, []any{&row, &published}, func() error {
		events++
		if !published || !arrived[row] {
			t.Errorf("%s: published %v, arrived %v", row, published, arrived[row])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if events == 0 {
		t.Error("the outbox has no event")
	}
	var parked int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM bff_consumer.inbox_parked").Scan(&parked); err != nil || parked > 0 {
		t.Errorf("%d platform events are quarantined, %v; want 0", parked, err)
	}
	t.Logf("%d events published", events)
}
