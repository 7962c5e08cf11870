package main

import (
	"maps"
	"math/big"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// predictedAttributes has computed attributes by type and path, in the platform's form, so that
// a plan shows dependent values: push addresses, environment variables of functions. {name} stands
// for another attribute of the resource or an argument of the provider.
var predictedAttributes = map[string]map[string]string{
	"google_api_gateway_gateway":             {"default_hostname": "{gateway_id}-abc.gateway.dev"},
	"google_cloudfunctions2_function":        {"service_config.uri": "https://{name}-abc.a.run.app"},
	"google_compute_network":                 {"id": "projects/{project}/global/networks/{name}"},
	"google_compute_ssl_policy":              {"id": "projects/{project}/global/sslPolicies/{name}"},
	"google_compute_subnetwork":              {"id": "projects/{project}/regions/{region}/subnetworks/{name}"},
	"google_monitoring_notification_channel": {"name": "projects/{project}/notificationChannels/1"},
	"google_monitoring_slo":                  {"name": "projects/{project}/services/{service}/serviceLevelObjectives/{slo_id}"},
	"google_monitoring_uptime_check_config":  {"uptime_check_id": "endpoint"},
	"google_pubsub_topic":                    {"id": "projects/{project}/topics/{name}"},
	"google_recaptcha_enterprise_key":        {"name": "6LfTheSiteKeyOfTheseTests"},
	"google_redis_instance":                  {"host": "10.0.0.3", "port": "6379", "auth_string": "the-password-of-redis"},
	"google_secret_manager_secret_version":   {"version": "1"},
	"google_service_account": {
		"email":  "{account_id}@{project}.iam.gserviceaccount.com",
		"member": "serviceAccount:{account_id}@{project}.iam.gserviceaccount.com",
		"name":   "projects/{project}/serviceAccounts/{account_id}@{project}.iam.gserviceaccount.com",
	},
	"google_sql_database_instance": {
		"connection_name": "{project}:{region}:{name}", "private_ip_address": "10.0.0.4",
		"server_ca_cert.cert": "the certificate of {name}'s authority",
	},
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// predict sets the unknown predicted attributes of a resource.
func (s *server) predict(typ string, v tftypes.Value) (tftypes.Value, error) {
	if v.IsNull() || predictedAttributes[typ] == nil {
		return v, nil
	}
	known, err := stringAttributes(v)
	if err != nil {
		return v, err
	}
	values := maps.Clone(s.config)
	maps.Copy(values, known)
	for path, text := range predictedAttributes[typ] {
		text = placeholder.ReplaceAllStringFunc(text, func(name string) string { return values[strings.Trim(name, "{}")] })
		if v, err = setUnknown(v, strings.Split(path, "."), text); err != nil {
			return v, err
		}
	}
	return v, nil
}

// setUnknown replaces the unknown value at path by text, or by a number. setUnknown descends into
// lists with one element; an unknown list becomes a list with one element. Known values stay.
func setUnknown(v tftypes.Value, path []string, text string) (tftypes.Value, error) {
	if !v.IsKnown() && len(path) == 0 {
		if v.Type().Is(tftypes.Number) {
			n, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven)
			return tftypes.NewValue(tftypes.Number, n), err
		}
		return tftypes.NewValue(tftypes.String, text), nil
	}
	if list, ok := v.Type().(tftypes.List); ok && !v.IsKnown() {
		one, err := setUnknown(unknownObject(list.ElementType), path, text)
		return tftypes.NewValue(v.Type(), []tftypes.Value{one}), err
	}
	if !v.IsKnown() || v.IsNull() || len(path) == 0 {
		return v, nil
	}
	if v.Type().Is(tftypes.List{}) {
		var list []tftypes.Value
		if err := v.As(&list); err != nil || len(list) != 1 {
			return v, err
		}
		one, err := setUnknown(list[0], path, text)
		return tftypes.NewValue(v.Type(), []tftypes.Value{one}), err
	}
	fields := map[string]tftypes.Value{}
	if err := v.As(&fields); err != nil {
		return v, err
	}
	inner, err := setUnknown(fields[path[0]], path[1:], text)
	fields[path[0]] = inner
	return tftypes.NewValue(v.Type(), fields), err
}

// unknownObject returns an object with unknown attributes; for other types it returns an unknown
// value.
func unknownObject(t tftypes.Type) tftypes.Value {
	object, ok := t.(tftypes.Object)
	if !ok {
		return tftypes.NewValue(t, tftypes.UnknownValue)
	}
	fields := map[string]tftypes.Value{}
	for name, of := range object.AttributeTypes {
		fields[name] = tftypes.NewValue(of, tftypes.UnknownValue)
	}
	return tftypes.NewValue(t, fields)
}

// stringAttributes returns the known string attributes.
func stringAttributes(v tftypes.Value) (map[string]string, error) {
	fields := map[string]tftypes.Value{}
	if err := v.As(&fields); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, f := range fields {
		if f.Type().Is(tftypes.String) && f.IsKnown() && !f.IsNull() {
			var text string
			if err := f.As(&text); err != nil {
				return nil, err
			}
			out[name] = text
		}
	}
	return out, nil
}
