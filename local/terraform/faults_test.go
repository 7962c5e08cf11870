package terraform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// validateAll returns the findings of all checks of the suite on a copy, cheapest check first.
func validateAll(ctx context.Context, c *Copy) (string, error) {
	if err := c.Validate(ctx); err != nil {
		return err.Error(), nil
	}
	p, err := c.Plan(ctx, "production")
	if err != nil {
		return err.Error(), nil
	}
	found, err := findings(root, p)
	return strings.Join(found, "\n"), err
}

// fault is a defect that the test plants by replacing a text in a file.
type fault struct {
	name, file, old, replacement string
	want                         string // required part of the message
}

// faults of a group are planted together if terraform continues after the first. Each fault needs
// its own message.
var faults = map[string][]fault{
	"what 'terraform validate' says": {
		{"an argument that is not known", "redis.tf", `auth_enabled `, `auth_enabeld `, "auth_enabeld"},
		{"a wrong type", "redis.tf", `memory_size_gb = var.redis_memory_gb`, `memory_size_gb = [1]`, "number required"},
		{"a block too many", "scheduler.tf", "  pubsub_target {", "  pubsub_target {\n    topic_name = \"t\"\n  }\n\n  pubsub_target {", "pubsub_target"},
		{"a type that the providers do not have", "secrets.tf", `"google_pubsub_subscription" "rotation"`, `"google_pubsub_subscriber" "rotation"`, "google_pubsub_subscriber"},
	},
	"what variables refuse": {
		{"four fields of cron in an environment", "environments/production.tfvars", "redis_memory_gb ", "cadence = { relay = \"* * * *\" }\nredis_memory_gb ", "five fields"},
		{"a duration without unit", "environments/production.tfvars", "redis_memory_gb ", "rotation_period = \"7776000\"\nredis_memory_gb ", "seconds with the unit"},
	},
	"what modules refuse": {
		{"20 s to acknowledge", "pubsub.tf", "ack_deadline_seconds  = 30", "ack_deadline_seconds  = 20", "30 to 600 seconds"},
		{"4 attempts", "scheduler.tf", "max_delivery_attempts = 5", "max_delivery_attempts = 4", "5 or 10 times"},
		{
			"everybody may consume", "function_consume.tf", `{ for account in var.consume_callers : account => "serviceAccount:${account}" }`,
			`{ all = "allUsers" }`, "open to everybody",
		},
	},
	"what resources refuse": {
		{"four fields of cron", "scheduler.tf", `"17 3 * * *"`, `"17 3 * *"`, "five fields"},
	},
	"what differs": {
		{"31 s to acknowledge", "pubsub.tf", "ack_deadline_seconds  = 30", "ack_deadline_seconds  = 31", `+ Ack: s"31s",`},
		{"another cadence", "scheduler.tf", `"17 3 * * *"`, `"18 3 * * *"`, "jobs of the local system"},
		{
			"a route the gateway has not", "gateway.openapi.yaml.tftpl", "  /bff/consumer/v1/wishlist:\n    get:\n", "  /bff/consumer/v1/wishlist:\n    put:\n",
			"routes of the API document",
		},
		{
			"an entry point that nobody registers", "functions.tf", "    migrate ",
			"    map = { folder = \"search\", entry = \"Map\", kind = \"public\", timeout = 10, connections = 4 }\n    migrate ", "Map of search",
		},
		{
			"a variable that nobody reads", "function_relay.tf", "    RELAY_RUN ", "    RELAY_REGION    = var.region\n    RELAY_RUN ",
			"Relay is given RELAY_REGION, which functions/relay does not read",
		},
		{
			"everybody may consume, past the module", "function_consume.tf", "# A tenant's BFF",
			"resource \"google_cloud_run_v2_service_iam_member\" \"all\" {\n  name   = module.consume[\"consume\"].service\n  role   = \"roles/run.invoker\"\n  member = \"allUsers\"\n}\n\n# A tenant's BFF",
			"Consume is internal and allUsers may call it",
		},
		{
			"events are to be judged by schemas that no program has", "locals.tf", "      UPSTREAM_AUTH         = \"google\"\n",
			"      UPSTREAM_AUTH         = \"google\"\n      VALIDATE_EVENTS = \"true\"\n", "Search is given VALIDATE_EVENTS, which is of the local system",
		},
		{
			"functions may not write metrics", "locals.tf", `"roles/telemetry.metricsWriter", `, ``,
			`roles/telemetry.metricsWriter`,
		},
		{"a duration without unit in the code", "modules/subscription/main.tf", `minimum_backoff = "10s"`, `minimum_backoff = "10"`, `minimum_backoff is "10"`},
		{
			"the load balancer's own choice of TLS", "edge.tf", "  ssl_policy       = google_compute_ssl_policy.this[each.key].id\n", "",
			"google_compute_target_https_proxy.this[\"this\"] has no policy of TLS",
		},
		{
			"a secret too many", "function_telemetry.tf", "for name in local.guest_secrets :", "for name in concat(local.guest_secrets, [\"HANDOFF_KEYS\"]) :",
			"TelemetryClick is given HANDOFF_KEYS, which functions/telemetry does not read",
		},
	},
	"what differs too": {
		{
			"no dead letters", "modules/subscription/main.tf",
			"  dead_letter_policy {\n    dead_letter_topic     = google_pubsub_topic.dead.id\n    max_delivery_attempts = var.max_delivery_attempts\n  }\n", "",
			`- DeadLetter: "bff-consumer.jobs.relay.dlq", + DeadLetter: "",`,
		},
		{
			"nobody keeps dead letters", "modules/subscription/main.tf",
			`  name                       = "${var.name}.dlq"`, `  name                       = "${var.name}.dead"`, "subscriptions that a person pulls",
		},
		{"an entry point that nobody deploys", "functions.tf", `entry = "SweepChoices"`, `entry = "SweepInbox"`, "SweepChoices of sweep"},
		{
			"a variable that nobody sets", "locals.tf", "    CLOUD_REGION         = var.region\n", "",
			"functions/search reads CLOUD_REGION, and none of its functions is given it",
		},
		{
			"a function without the connector does not know whom to trust", "function_search.tf", "local.environment.direct, ", "",
			"functions/search reads CLOUDSQL_CA, and none of its functions is given it",
		},
		{
			"the gateway may consume", "function_consume.tf", `{ for account in var.consume_callers : account => "serviceAccount:${account}" }`,
			`{ gateway = google_service_account.gateway.member }`, "Consume is internal and serviceAccount:bffc-gateway@",
		},
		{"a role too many", "locals.tf", `["roles/cloudsql.client"]`, `["roles/cloudsql.client", "roles/editor"]`, "roles/editor"},
		{"TLS 1.0", "edge.tf", `"TLS_1_2"`, `"TLS_1_0"`, `google_compute_target_https_proxy.this["this"] lets in the version "TLS_1_0"`},
		{"keys of the certificate alone", "edge.tf", `"MODERN"`, `"COMPATIBLE"`, `google_compute_target_https_proxy.this["this"] lets in the profile "COMPATIBLE"`},
		{
			"more instances than Postgres takes", "environments/production.tfvars", "max_instances = 10 }", "max_instances = 90 }",
			"check.connections_fit: fail",
		},
		{
			"a route to another function", "gateway.openapi.yaml.tftpl", "${address.SessionClear}", "${address.Session}", "routes of the API document",
		},
	},
	"what else differs": {
		{"10 attempts of a tick", "scheduler.tf", "max_delivery_attempts = 5", "max_delivery_attempts = 10", "- Attempts: 5, + Attempts: 10,"},
		{
			"a version of TLS that nobody chose", "edge.tf", "  min_tls_version = \"TLS_1_2\"\n", "",
			`google_compute_target_https_proxy.this["this"] lets in the version ""`,
		},
		{
			"Pub/Sub may not publish dead letters", "modules/subscription/main.tf",
			`role   = "roles/pubsub.publisher"`, `role   = "roles/pubsub.viewer"`, `- "publish", + "view",`,
		},
		{"an API that nobody switches on", "services.tf", `    "cloudtrace.googleapis.com", `, `    `, "OTEL_EXPORTER_OTLP_ENDPOINT needs cloudtrace"},
		{
			"a secret taken from the revision before", "secrets.tf", `deletion_policy = "ABANDON"`, `deletion_policy = "DELETE"`,
			"google_secret_manager_secret_version.edge[0] would be deleted",
		},
		{"a job that the internet may knock at", "modules/function/main.tf", `contains(["event", "job"], var.function.kind)`, `var.function.kind == "event"`, "Relay is job and lets in ALLOW_ALL"},
		{
			"who builds reads Terraform's state", "functions.tf", `for_each = length(each.value) > 0 ? [join(" || ", each.value)] : []`, `for_each = []`,
			`resource.name.startsWith("projects/_/buckets/gcf-v2-")`,
		},
	},
}

func TestFindings_DetectInjectedFaults(t *testing.T) {
	for group, faults := range faults {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			c := newCopy(t)
			for _, f := range faults {
				if err := f.apply(c); err != nil {
					t.Fatal(err)
				}
			}
			said, err := validateAll(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			// terraform wraps its messages
			said = strings.Join(strings.Fields(strings.ReplaceAll(said, "│", " ")), " ")
			for _, f := range faults {
				if !strings.Contains(said, f.want) {
					t.Errorf("%s: not in %s", f.name, said)
				}
			}
		})
	}
}

func (f fault) apply(c *Copy) error {
	path := filepath.Join(c.Dir, f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), f.old, f.replacement, 1)
	if changed == string(text) {
		return fmt.Errorf("%s: %s has no %q: plant the fault elsewhere", f.name, f.file, f.old)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
