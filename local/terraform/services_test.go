package terraform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiByTypePrefix maps prefixes of resource types to the API of the resources. The first match
// counts.
var apiByTypePrefix = []struct{ begins, api string }{
	{"google_api_gateway_", "apigateway"},
	{"google_cloud_run_", "run"},
	{"google_cloud_scheduler_", "cloudscheduler"},
	{"google_cloudfunctions2_", "cloudfunctions"},
	{"google_compute_", "compute"},
	{"google_logging_", "logging"},
	{"google_monitoring_", "monitoring"},
	{"google_project_service", "serviceusage"},
	{"google_project_", "cloudresourcemanager"},
	{"google_pubsub_", "pubsub"},
	{"google_recaptcha_", "recaptchaenterprise"},
	{"google_redis_", "redis"},
	{"google_secret_manager_", "secretmanager"},
	{"google_service_account", "iam"},
	{"google_service_networking_", "servicenetworking"},
	{"google_sql_", "sqladmin"},
	{"google_storage_", "storage"},
}

// extraAPIs maps resource types and variables to APIs that the deployed system calls without a
// resource of the API.
var extraAPIs = map[string][]string{
	"google_api_gateway_gateway":      {"servicemanagement", "servicecontrol"},
	"google_cloudfunctions2_function": {"artifactregistry", "cloudbuild", "run"},
	"google_sql_user":                 {"sqladmin"}, // issues the connector's certificates
	"REMOTE_CONFIG_PROJECT":           {"firebaseremoteconfig"},
	// the platform drops traces without cloudtrace
	"OTEL_EXPORTER_OTLP_ENDPOINT": {"telemetry", "cloudtrace", "monitoring"},
	"RECAPTCHA_PROJECT":           {"recaptchaenterprise"},
}

// missingAPIs returns the required APIs that neither the plan nor the first step of docs/deploy.md
// enables.
func missingAPIs(p *Plan, deployed []Function, deploy string) (found []string, _ error) {
	switched, err := decodeResources[struct{ Service string }](p, "google_project_service")
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, s := range switched {
		on[s.Service] = true
	}
	_, first, _ := strings.Cut(deploy, "gcloud services enable ")
	first, _, _ = strings.Cut(first, "\ngcloud ")
	for _, word := range strings.Fields(first) {
		on[word] = true
	}
	needed := map[string]string{} // resource or variable by API
	for _, c := range p.Changes {
		i := slices.IndexFunc(apiByTypePrefix, func(s struct{ begins, api string }) bool { return strings.HasPrefix(c.Type, s.begins) })
		if i < 0 {
			return nil, fmt.Errorf("terraform: which API makes %s?", c.Type)
		}
		needed[apiByTypePrefix[i].api] = c.Type
		for _, api := range extraAPIs[c.Type] {
			needed[api] = c.Type
		}
	}
	for _, f := range deployed {
		for name := range f.Environment {
			for _, api := range extraAPIs[name] {
				needed[api] = name
			}
		}
	}
	for api, by := range needed {
		if !on[api+".googleapis.com"] {
			found = append(found, fmt.Sprintf("%s needs %s, which nobody switches on", by, api))
		}
	}
	return found, nil
}

// missingAbandonPolicies returns the resources whose destruction would break remaining users or
// block a destroy. An abandoned resource disappears together with its parent.
func missingAbandonPolicies(p *Plan) (found []string, _ error) {
	for typ, why := range map[string]string{
		"google_secret_manager_secret_version": "instances of the revision before mount it",
		"google_sql_user":                      "Postgres deletes none that may do something",
		"google_sql_database":                  "Postgres deletes none that somebody is connected to",
	} {
		all, err := decodeResources[struct {
			Policy string `json:"deletion_policy"`
		}](p, typ)
		if err != nil {
			return nil, err
		}
		for address, r := range all {
			if r.Policy != "ABANDON" {
				found = append(found, fmt.Sprintf("%s would be deleted: %s", address, why))
			}
		}
	}
	return found, nil
}

// wrongIngress returns the internal endpoints that accept requests from the internet although only
// Pub/Sub of the same project calls them.
func wrongIngress(deployed []Function) (found []string) {
	for _, f := range deployed {
		want := "ALLOW_ALL"
		if f.Kind == "event" || f.Kind == "job" {
			want = "ALLOW_INTERNAL_ONLY"
		}
		if f.Ingress != want {
			found = append(found, fmt.Sprintf("%s is %s and lets in %s", f.EntryPoint, f.Kind, f.Ingress))
		}
	}
	return found
}

func TestPlan_RequiresOwnVariables(t *testing.T) {
	c := newCopy(t)
	c.variables = nil
	_, err := c.Plan(t.Context(), "production")
	if err == nil {
		t.Fatal("alerts would be sent to nobody")
	}
	for _, name := range []string{"deployers", "operators", "alert_channels", "runbooks_url"} {
		if !strings.Contains(err.Error(), "var."+name) {
			t.Errorf("%s is not asked for: %v", name, err)
		}
	}
}

// deployDoc returns the text of docs/deploy.md.
func deployDoc() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "deploy.md"))
	return string(text), err
}
