package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	_ "melmastoon.ghasi.io/bff-consumer/local/functions" // the deployed functions
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Service accounts of terraform/ that call functions.
const (
	pusherMember  = "serviceAccount:bffc-pusher@"
	gatewayMember = "serviceAccount:bffc-gateway@"
)

// findings returns the differences between a plan and the code, the API documents and the local
// system.
func findings(root string, p *Plan) ([]string, error) {
	deployed, err := p.Functions()
	if err != nil {
		return nil, err
	}
	operations := map[string]gateway.Operation{} // by function
	for _, document := range []string{"consumer", "internal"} {
		all, err := gateway.Operations(filepath.Join(root, "api", document+".openapi.yaml"))
		if err != nil {
			return nil, err
		}
		for _, op := range all {
			operations[op.Function] = op
		}
	}
	var found []string
	for _, c := range p.Checks {
		if c.Status != "pass" {
			found = append(found, fmt.Sprintf("%s: %s", c.Address.Display, c.Status))
		}
	}
	found = append(found, diffEntryPoints(deployed, operations)...)
	found = append(found, wrongInvokers(deployed)...)
	found = append(found, wrongIngress(deployed)...)
	for _, compare := range []func() ([]string, error){
		func() ([]string, error) { return diffVariables(root, deployed) },
		func() ([]string, error) { return diffGrants(p, deployed) },
		func() ([]string, error) { return diffRoutes(p, deployed, operations) },
		func() ([]string, error) { return diffSubscriptions(p, deployed, operations) },
		func() ([]string, error) { return diffSchedules(p) },
		func() ([]string, error) { return badDurations(p) },
		func() ([]string, error) { return missingAbandonPolicies(p) },
		func() ([]string, error) { return weakTLS(p) },
		func() ([]string, error) {
			deploy, err := deployDoc()
			if err != nil {
				return nil, err
			}
			return missingAPIs(p, deployed, deploy)
		},
	} {
		more, err := compare()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// diffNames returns the names that are in only one of two sets.
func diffNames(what string, want, got []string) []string {
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return []string{what + " (-), and what is deployed (+):\n" + diff}
	}
	return nil
}

func diffEntryPoints(deployed []Function, operations map[string]gateway.Operation) []string {
	var registered, planned []string
	for _, f := range web.Functions() {
		registered = append(registered, f.Name+" of "+operations[f.Name].Folder)
	}
	for _, f := range deployed {
		planned = append(planned, f.EntryPoint+" of "+f.Folder)
	}
	return diffNames("entry points that the code registers", registered, planned)
}

// wrongInvokers returns the accounts that may call a function without need.
func wrongInvokers(deployed []Function) (found []string) {
	for _, f := range deployed {
		for _, member := range f.Invokers {
			ok := map[string]bool{
				"public":   strings.HasPrefix(member, gatewayMember),
				"event":    strings.HasPrefix(member, pusherMember),
				"job":      strings.HasPrefix(member, pusherMember),
				"internal": strings.HasPrefix(member, "serviceAccount:") && strings.TrimPrefix(member, "serviceAccount:") == f.Environment["CALLER_ACCOUNTS"],
				"operator": !strings.HasPrefix(member, "all"),
			}[f.Kind]
			if !ok {
				found = append(found, fmt.Sprintf("%s is %s and %s may call it", f.EntryPoint, f.Kind, member))
			}
		}
		if len(f.Invokers) == 0 {
			found = append(found, f.EntryPoint+": nobody may call it")
		}
	}
	return found
}

// diffRoutes compares the gateway's routes with the API document.
func diffRoutes(p *Plan, deployed []Function, operations map[string]gateway.Operation) ([]string, error) {
	said, err := p.Routes()
	if err != nil {
		return nil, err
	}
	uri := map[string]string{}
	var found []string
	for _, f := range deployed {
		uri[f.EntryPoint] = f.URI
		if (f.Kind == "public") != strings.HasPrefix(operations[f.EntryPoint].Path, web.BasePath+"/") {
			found = append(found, fmt.Sprintf("%s is %s at %q", f.EntryPoint, f.Kind, operations[f.EntryPoint].Path))
		}
	}
	var want, got []string
	paths := map[string]bool{}
	for _, op := range operations {
		if !strings.HasPrefix(op.Path, web.BasePath+"/") {
			continue
		}
		methods := []string{op.Method}
		if op.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		for _, m := range methods {
			want = append(want, fmt.Sprintf("%s %s to %s", m, op.Path, uri[op.Function]))
		}
		paths[op.Path] = true
	}
	for _, r := range said {
		if r.Translation != "APPEND_PATH_TO_ADDRESS" || r.Deadline < 2*web.Budget.Seconds() || r.Address == "" {
			found = append(found, fmt.Sprintf("the gateway's route is %+v", r))
		}
		if r.Method == http.MethodOptions {
			delete(paths, r.Path)
			continue
		}
		got = append(got, fmt.Sprintf("%s %s to %s", r.Method, r.Path, r.Address))
	}
	for path := range paths {
		found = append(found, "a browser cannot ask about "+path)
	}
	return append(found, diffNames("routes of the API document", want, got)...), nil
}

// diffSubscriptions compares subscriptions and topics with the table of local/pubsub.
func diffSubscriptions(p *Plan, deployed []Function, operations map[string]gateway.Operation) (found []string, _ error) {
	pushed, pulled, err := p.Subscriptions()
	if err != nil {
		return nil, err
	}
	topics, err := p.Topics()
	if err != nil {
		return nil, err
	}
	functions := map[string]Function{}
	for _, f := range deployed {
		functions[f.EntryPoint] = f
	}
	wantTopics := []string{"bff-consumer.secrets.rotation"}
	wantPulled := map[string]string{"bff-consumer.secrets.rotation": "bff-consumer.secrets.rotation"}
	var want []Subscription
	for _, s := range pubsub.PushSubscriptions() {
		f := functions[s.Function]
		want = append(want, Subscription{
			Name: s.Name, Topic: s.Topic, Ack: s.AckDeadline, Attempts: s.MaxAttempts, DeadLetter: s.DeadLetterTopic,
			Endpoint: f.URI + operations[s.Function].Path, Audience: f.URI,
			Account: strings.TrimPrefix(strings.Join(f.Invokers, " "), "serviceAccount:"),
		})
		wantTopics = append(wantTopics, s.DeadLetterTopic)
		wantPulled[s.DeadLetterTopic] = s.DeadLetterTopic
		if strings.HasPrefix(s.Topic, "bff-consumer.") {
			wantTopics = append(wantTopics, s.Topic)
		}
		if f.Timeout < s.AckDeadline {
			found = append(found, fmt.Sprintf("%s is cut off after %s, and has %s to answer", s.Function, f.Timeout, s.AckDeadline))
		}
	}
	for _, s := range pubsub.TelemetrySubscriptions() {
		wantTopics = append(wantTopics, s.Topic)
	}
	slices.SortFunc(want, func(a, b Subscription) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(want, pushed); diff != "" {
		found = append(found, "subscriptions of the local system (-), and what is deployed (+):\n"+diff)
	}
	if diff := cmp.Diff(wantPulled, pulled); diff != "" {
		found = append(found, "subscriptions that a person pulls (-), and what is deployed (+):\n"+diff)
	}
	return append(found, diffNames("topics of the local system", wantTopics, topics)...), nil
}

func diffSchedules(p *Plan) ([]string, error) {
	got, err := p.Jobs()
	if err != nil {
		return nil, err
	}
	want := map[string]string{}
	for _, j := range pubsub.Jobs() {
		tick, _ := pubsub.JobSubscription(j.Name)
		want[tick.Topic] = j.Schedule
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return []string{"jobs of the local system (-), and what is deployed (+):\n" + diff}, nil
	}
	return nil, nil
}

// diffGrants compares the granted roles with the required roles.
func diffGrants(p *Plan, deployed []Function) (found []string, _ error) {
	const agent = "serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com"
	type grant struct {
		Topic, Subscription, Secret, Role, Member, Where string
	}
	type raw struct {
		Topic, Subscription, Role, Member string
		Secret                            string `json:"secret_id"`
		Condition                         []struct{ Expression string }
	}
	var got, want []string
	for _, typ := range []string{
		"google_pubsub_topic_iam_member", "google_pubsub_subscription_iam_member", "google_secret_manager_secret_iam_member", "google_project_iam_member",
	} {
		all, err := decodeResources[raw](p, typ)
		if err != nil {
			return nil, err
		}
		for _, g := range slices.Collect(maps.Values(all)) {
			one := grant{g.Topic, g.Subscription, g.Secret, g.Role, g.Member, ""}
			for _, c := range g.Condition {
				one.Where += c.Expression
			}
			got = append(got, fmt.Sprintf("%+v", one))
		}
	}
	add := func(g grant) { want = append(want, fmt.Sprintf("%+v", g)) }
	account := func(f Function) string {
		return "serviceAccount:" + f.Environment["CLOUDSQL_USER"] + ".gserviceaccount.com"
	}
	for _, f := range deployed {
		roles := []string{"roles/cloudsql.instanceUser"}
		if f.Environment["CLOUDSQL_ADDRESS"] == "" { // through the connector, which requests a certificate
			roles = append(roles, "roles/cloudsql.client")
		}
		if f.Environment["REMOTE_CONFIG_PROJECT"] != "" {
			roles = append(roles, "roles/cloudconfig.viewer")
		}
		if f.Environment["RECAPTCHA_PROJECT"] != "" {
			roles = append(roles, "roles/recaptchaenterprise.agent")
		}
		if strings.HasSuffix(f.Environment["OTEL_EXPORTER_OTLP_ENDPOINT"], ".googleapis.com") {
			roles = append(roles, "roles/telemetry.tracesWriter", "roles/telemetry.metricsWriter", "roles/serviceusage.serviceUsageConsumer")
		}
		for _, role := range roles {
			add(grant{Role: role, Member: account(f)})
		}
		for _, secret := range f.Secrets {
			add(grant{Secret: secret, Role: "roles/secretmanager.secretAccessor", Member: account(f)})
		}
		if f.EntryPoint == "Relay" {
			for _, s := range pubsub.TelemetrySubscriptions() {
				add(grant{Topic: s.Topic, Role: "roles/pubsub.publisher", Member: account(f)})
			}
		}
	}
	for _, s := range pubsub.PushSubscriptions() {
		add(grant{Topic: s.DeadLetterTopic, Role: "roles/pubsub.publisher", Member: agent})
		add(grant{Subscription: s.Name, Role: "roles/pubsub.subscriber", Member: agent})
	}
	_, at, _ := strings.Cut(account(deployed[0]), "@")
	project, _, _ := strings.Cut(at, ".")
	builder := "serviceAccount:bffc-builder@" + at
	add(grant{Role: "roles/logging.logWriter", Member: builder})
	add(grant{Role: "roles/artifactregistry.writer", Member: builder})
	// A bucket of the same project holds Terraform's state, with secrets.
	add(grant{Role: "roles/storage.objectViewer", Member: builder, Where: `resource.name.startsWith("projects/_/buckets/gcf-v2-") || ` +
		`resource.name.startsWith("projects/_/buckets/` + project + `-bff-consumer-source")`})
	for _, member := range []string{"group:oncall@ghasi.io", "user:One@ghasi.io"} { // a group and a user
		add(grant{Role: "roles/cloudsql.client", Member: member})
		add(grant{Role: "roles/cloudsql.instanceUser", Member: member})
	}
	add(grant{
		Topic: "bff-consumer.secrets.rotation", Role: "roles/pubsub.publisher",
		Member: "serviceAccount:service-123456789@gcp-sa-secretmanager.iam.gserviceaccount.com",
	})
	return diffNames("grants that are needed", want, got), nil
}

var (
	durationName  = regexp.MustCompile(`(^|_)(duration|backoff|period|deadline|ttl|auto_close)$`)
	durationValue = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?s$`)
)

// badDurations returns the durations of the plan, at any depth, that are not a number of seconds
// with the unit. An empty text is valid: a subscription that never expires.
func badDurations(p *Plan) (found []string, _ error) {
	for _, c := range p.Changes {
		var v any
		if err := json.Unmarshal(c.Change.After, &v); err != nil {
			return nil, fmt.Errorf("terraform: read %s: %w", c.Address, err)
		}
		walkStrings(v, func(name, text string) {
			if durationName.MatchString(name) && text != "" && !durationValue.MatchString(text) {
				found = append(found, fmt.Sprintf("%s: %s is %q", c.Address, name, text))
			}
		})
	}
	slices.Sort(found)
	return found, nil
}

// walkStrings calls a function for every text of a value, with the name of the member.
func walkStrings(v any, visit func(name, text string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walkStrings(e, visit)
		}
	case map[string]any:
		for name, e := range v {
			if text, ok := e.(string); ok {
				visit(name, text)
			}
			walkStrings(e, visit)
		}
	}
}
