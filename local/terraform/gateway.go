package terraform

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oasdiff/yaml"
)

// Route is an operation of the gateway's OpenAPI document.
type Route struct {
	Method, Path string
	Address      string  // URL of the function
	Translation  string  // path_translation of x-google-backend
	Deadline     float64 // in seconds
}

// Routes returns the operations of the gateway's OpenAPI document, sorted by path, then method.
func (p *Plan) Routes() ([]Route, error) {
	planned, err := decodeResources[struct {
		Documents []struct {
			Document []struct{ Contents string } `json:"document"`
		} `json:"openapi_documents"`
	}](p, "google_api_gateway_api_config")
	if err != nil {
		return nil, err
	}
	for _, c := range planned {
		if len(c.Documents) == 1 && len(c.Documents[0].Document) == 1 {
			text, err := base64.StdEncoding.DecodeString(c.Documents[0].Document[0].Contents)
			if err != nil {
				return nil, fmt.Errorf("terraform: read the gateway's document: %w", err)
			}
			return readRoutes(text)
		}
	}
	return nil, errors.New("terraform: the gateway has no document")
}

func readRoutes(document []byte) ([]Route, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			Backend struct {
				Address     string  `json:"address"`
				Translation string  `json:"path_translation"`
				Deadline    float64 `json:"deadline"`
			} `json:"x-google-backend"`
		} `json:"paths"`
	}
	if _, err := yaml.Unmarshal(document, &doc, yaml.DecodeOpts{}); err != nil {
		return nil, fmt.Errorf("terraform: read the gateway's document: %w", err)
	}
	var all []Route
	for path, methods := range doc.Paths {
		for method, op := range methods {
			b := op.Backend
			all = append(all, Route{strings.ToUpper(method), path, b.Address, b.Translation, b.Deadline})
		}
	}
	slices.SortFunc(all, func(a, b Route) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return all, nil
}
