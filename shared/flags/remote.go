package flags

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const maxTemplate = 1 << 20 // bytes; the template has six parameters

// parameters maps parameter names of Remote Config to fields of the document. A parameter whose
// meaning changes gets a new version.
var parameters = map[string]string{
	"bff.consumer.campaign_mode.v1":  "campaignMode",
	"bff.consumer.sampling.v1":       "sampling",
	"bff.consumer.limits_enabled.v1": "limitsEnabled",
	"bff.consumer.limits.v1":         "limits",
	"bff.consumer.bot_mode.v1":       "botMode",
	"bff.consumer.challenge.v1":      "challenge",
}

// remote reads one Remote Config template.
type remote struct {
	url   string
	token func(context.Context) (string, error)

	mu   sync.Mutex // held during a refresh
	etag string
}

// refresh reads the template once and stores the values in s. If the read fails, s keeps the old
// values and logs the error. While another refresh is running, refresh returns at once.
func (r *remote) refresh(ctx context.Context, s *Source) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	last := s.current.Load()
	fields, etag, err := r.fetch(ctx)
	if err != nil {
		s.set(r.url, last, err)
		return
	}
	if fields == nil {
		return
	}
	// Store the ETag even if a parameter is invalid: the parameter stays invalid until the template
	// changes, and another read would only log the error again.
	r.etag = etag
	v, err := merge(fields, last)
	s.set(r.url, v, err)
}

// fetch returns the fields by their document names, or nil fields if the template has not changed.
func (r *remote) fetch(ctx context.Context) (fields map[string]jsontext.Value, etag string, err error) {
	token, err := r.token(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("flags: get a token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, "", fmt.Errorf("flags: request Remote Config: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("flags: request Remote Config: %w", err)
	}
	defer res.Body.Close()
	etag = res.Header.Get("ETag")
	switch {
	case res.StatusCode == http.StatusNotModified, res.StatusCode == http.StatusOK && etag != "" && etag == r.etag:
		return nil, etag, nil
	case res.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("flags: request Remote Config: status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTemplate))
	if err != nil {
		return nil, "", fmt.Errorf("flags: read the template: %w", err)
	}
	if fields, err = parseTemplate(body); err != nil {
		return nil, "", fmt.Errorf("flags: read the template: %w", err)
	}
	return fields, etag, nil
}

// parameter is a parameter of the template. Conditional values are for client apps; the service
// reads the default value only.
type parameter struct {
	DefaultValue struct {
		Value           *string `json:"value"`
		UseInAppDefault bool    `json:"useInAppDefault"`
	} `json:"defaultValue"`
}

// parseTemplate returns the known parameters, inside and outside parameter groups. A value is a
// string: booleans and objects are JSON, a word has no quotes. parseTemplate quotes a value that is
// not JSON; merge rejects the value if the field is not a word.
func parseTemplate(body []byte) (map[string]jsontext.Value, error) {
	var template struct {
		Parameters      map[string]parameter `json:"parameters"`
		ParameterGroups map[string]struct {
			Parameters map[string]parameter `json:"parameters"`
		} `json:"parameterGroups"`
	}
	if err := json.Unmarshal(body, &template); err != nil {
		return nil, err
	}
	fields := map[string]jsontext.Value{}
	add := func(all map[string]parameter) {
		for name, p := range all {
			field, known := parameters[name]
			if !known || p.DefaultValue.UseInAppDefault || p.DefaultValue.Value == nil {
				continue
			}
			value := jsontext.Value(*p.DefaultValue.Value)
			if !value.IsValid() {
				// never fails: a decoded string is valid UTF-8
				value, _ = jsontext.AppendQuote(nil, *p.DefaultValue.Value)
			}
			fields[field] = value
		}
	}
	add(template.Parameters)
	for _, group := range template.ParameterGroups {
		add(group.Parameters)
	}
	return fields, nil
}
