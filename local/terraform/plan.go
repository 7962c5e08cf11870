package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is the part of a terraform plan that the tests use. Values that the platform assigns are
// absent unless tools/tfstub computes them.
type Plan struct {
	Changes []Change `json:"resource_changes"`
	Checks  []struct {
		Address struct {
			Display string `json:"to_display"`
		} `json:"address"`
		Status string `json:"status"` // pass, fail, error, unknown
	} `json:"checks"`
}

// Change is a planned resource.
type Change struct {
	Address string `json:"address"`
	Module  string `json:"module_address"` // such as module.search["search-map"]
	Type    string `json:"type"`
	Name    string `json:"name"`
	Change  struct {
		After json.RawMessage `json:"after"`
	} `json:"change"`
}

// Function is a deployed entry point.
type Function struct {
	Name                      string // bff-consumer-search-map
	EntryPoint                string // SearchMap
	Folder                    string
	Kind                      string
	Environment               map[string]string
	Secrets                   map[string]string // name of the secret by environment variable
	Invokers                  []string
	URI                       string
	Ingress                   string
	Timeout                   time.Duration
	MaxInstances, Concurrency int
}

// Subscription is a push subscription.
type Subscription struct {
	Name, Topic        string
	Ack                time.Duration
	Attempts           int
	DeadLetter         string // name of the dead-letter topic
	Endpoint, Audience string
	Account            string // service account of the push
}

// decodeResources decodes all planned resources of a type, by address.
func decodeResources[T any](p *Plan, typ string) (map[string]T, error) {
	all := map[string]T{}
	for _, c := range p.Changes {
		if c.Type != typ {
			continue
		}
		var v T
		if err := json.Unmarshal(c.Change.After, &v); err != nil {
			return nil, fmt.Errorf("terraform: read %s: %w", c.Address, err)
		}
		all[c.Address] = v
	}
	return all, nil
}

// Functions returns all entry points of the plan, sorted by name.
func (p *Plan) Functions() ([]Function, error) {
	planned, err := decodeResources[struct {
		Name   string
		Labels map[string]string
		Build  []struct {
			Entry string `json:"entry_point"`
		} `json:"build_config"`
		Service []struct {
			Env     map[string]string              `json:"environment_variables"`
			Secrets []struct{ Key, Secret string } `json:"secret_environment_variables"`
			URI     string
			Timeout int    `json:"timeout_seconds"`
			Max     int    `json:"max_instance_count"`
			Ingress string `json:"ingress_settings"`
			AtOnce  int    `json:"max_instance_request_concurrency"`
		} `json:"service_config"`
	}](p, "google_cloudfunctions2_function")
	if err != nil {
		return nil, err
	}
	invokers, err := decodeResources[struct{ Name, Role, Member string }](p, "google_cloud_run_v2_service_iam_member")
	if err != nil {
		return nil, err
	}
	var all []Function
	for address, f := range planned {
		if len(f.Build) != 1 || len(f.Service) != 1 {
			return nil, fmt.Errorf("terraform: %s has no build or no service", address)
		}
		s := f.Service[0]
		one := Function{
			Name: f.Name, EntryPoint: f.Build[0].Entry, Folder: f.Labels["folder"], Kind: f.Labels["kind"], Environment: s.Env,
			Secrets: map[string]string{}, URI: s.URI, Ingress: s.Ingress, Timeout: time.Duration(s.Timeout) * time.Second, MaxInstances: s.Max, Concurrency: s.AtOnce,
		}
		for _, secret := range s.Secrets {
			one.Secrets[secret.Key] = secret.Secret
		}
		for _, i := range invokers {
			if i.Name == f.Name && i.Role == "roles/run.invoker" {
				one.Invokers = append(one.Invokers, i.Member)
			}
		}
		slices.Sort(one.Invokers)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Subscriptions returns the push subscriptions, sorted by name, and the topics of the pull
// subscriptions, by name.
func (p *Plan) Subscriptions() (pushed []Subscription, pulled map[string]string, _ error) {
	planned, err := decodeResources[struct {
		Name, Topic string
		Ack         int `json:"ack_deadline_seconds"`
		Push        []struct {
			Endpoint string `json:"push_endpoint"`
			Token    []struct {
				Audience string
				Account  string `json:"service_account_email"`
			} `json:"oidc_token"`
		} `json:"push_config"`
		Dead []struct {
			Topic    string `json:"dead_letter_topic"`
			Attempts int    `json:"max_delivery_attempts"`
		} `json:"dead_letter_policy"`
	}](p, "google_pubsub_subscription")
	if err != nil {
		return nil, nil, err
	}
	pulled = map[string]string{}
	for _, s := range planned {
		topic := s.Topic[strings.LastIndexByte(s.Topic, '/')+1:]
		if len(s.Push) == 0 {
			pulled[s.Name] = topic
			continue
		}
		one := Subscription{Name: s.Name, Topic: topic, Ack: time.Duration(s.Ack) * time.Second, Endpoint: s.Push[0].Endpoint}
		if len(s.Push[0].Token) == 1 {
			one.Audience, one.Account = s.Push[0].Token[0].Audience, s.Push[0].Token[0].Account
		}
		if len(s.Dead) == 1 {
			one.Attempts, one.DeadLetter = s.Dead[0].Attempts, s.Dead[0].Topic[strings.LastIndexByte(s.Dead[0].Topic, '/')+1:]
		}
		pushed = append(pushed, one)
	}
	slices.SortFunc(pushed, func(a, b Subscription) int { return strings.Compare(a.Name, b.Name) })
	return pushed, pulled, nil
}

// Topics returns the names of all topics, sorted.
func (p *Plan) Topics() ([]string, error) {
	planned, err := decodeResources[struct{ Name string }](p, "google_pubsub_topic")
	var names []string
	for _, t := range planned {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names, err
}

// Jobs returns the schedules of all jobs by topic. It returns an error for a job that does not
// publish {} or whose time zone is not UTC.
func (p *Plan) Jobs() (map[string]string, error) {
	planned, err := decodeResources[struct {
		Schedule string
		Zone     string `json:"time_zone"`
		Target   []struct {
			Topic string `json:"topic_name"`
			Data  string
		} `json:"pubsub_target"`
	}](p, "google_cloud_scheduler_job")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for address, j := range planned {
		if len(j.Target) != 1 || j.Target[0].Data != "e30=" || j.Zone != "Etc/UTC" {
			return nil, fmt.Errorf("terraform: %s does not publish {} on a schedule in UTC", address)
		}
		all[j.Target[0].Topic[strings.LastIndexByte(j.Target[0].Topic, '/')+1:]] = j.Schedule
	}
	return all, nil
}
