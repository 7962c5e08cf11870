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

const maxTemplate = 1 << 20 // bytes; ours has six parameters

// parameters are the names of the fields in Remote Config. A new meaning gets a new version.
var parameters = map[string]string{
	"bff.consumer.campaign_mode.v1":  "campaignMode",
	"bff.consumer.sampling.v1":       "sampling",
	"bff.consumer.limits_enabled.v1": "limitsEnabled",
	"bff.consumer.limits.v1":         "limits",
	"bff.consumer.bot_mode.v1":       "botMode",
	"bff.consumer.challenge.v1":      "challenge",
}

// remote is one Remote Config template.
type remote struct {
	url   string
	token func(context.Context) (string, error)

	mu   sync.Mutex // one refresh at a time
	etag string
}

// refresh asks once and gives s what it learns. Without an answer s keeps what it has.
func (r *remote) refresh(ctx context.Context, s *Source) {
	if !r.mu.TryLock() {
		return // the last one is still under way
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
	// Remembered even when a parameter is bad: it stays bad, and logged once, until the template changes.
	r.etag = etag
	v, err := merge(fields, last)
	s.set(r.url, v, err)
}

// fetch returns the fields by their names in the document, or nil when the template has not changed.
func (r *remote) fetch(ctx context.Context) (fields map[string]jsontext.Value, etag string, err error) {
	token, err := r.token(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("flags: get a token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, "", fmt.Errorf("flags: ask Remote Config: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("flags: ask Remote Config: %w", err)
	}
	defer res.Body.Close()
	etag = res.Header.Get("ETag")
	switch {
	case res.StatusCode == http.StatusNotModified, res.StatusCode == http.StatusOK && etag != "" && etag == r.etag:
		return nil, etag, nil
	case res.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("flags: ask Remote Config: status %d", res.StatusCode)
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

// parameter has one value for everybody. Conditional values are for client apps and not looked at.
type parameter struct {
	DefaultValue struct {
		Value           *string `json:"value"`
		UseInAppDefault bool    `json:"useInAppDefault"`
	} `json:"defaultValue"`
}

// parseTemplate picks our parameters, grouped in the console or not. A value is a string in which
// booleans and objects are JSON and a word is bare; one that is no JSON is left for merge to refuse.
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
			field, ours := parameters[name]
			if !ours || p.DefaultValue.UseInAppDefault || p.DefaultValue.Value == nil {
				continue
			}
			value := jsontext.Value(*p.DefaultValue.Value)
			if !value.IsValid() {
				value, _ = jsontext.AppendQuote(nil, *p.DefaultValue.Value) // a decoded string can be quoted
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
