package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation is an operation of an OpenAPI document.
type Operation struct {
	Method   string
	Path     string // absolute, with variables in braces
	Function string // the operationId, which is the function's deployed name
	Folder   string // the first tag, which is the folder under functions/; "" without tags
}

// Operations reads an OpenAPI document and returns its operations sorted by path, then method. It
// returns an error if the file cannot be read or is not an OpenAPI document.
func Operations(file string) ([]Operation, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true // internal.openapi.yaml refers to schemas of consumer.openapi.yaml
	doc, err := loader.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("gateway: read %s: %w", file, err)
	}
	base := ""
	if len(doc.Servers) > 0 {
		server, err := url.Parse(doc.Servers[0].URL)
		if err != nil {
			return nil, fmt.Errorf("gateway: read %s: servers: %w", file, err)
		}
		base = strings.TrimRight(server.Path, "/")
	}
	var all []Operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			one := Operation{Method: method, Path: base + path, Function: op.OperationID}
			if len(op.Tags) > 0 {
				one.Folder = op.Tags[0]
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return all, nil
}
