package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation is one route of the API document.
type Operation struct {
	Method   string
	Path     string // from the root, variables in braces
	Function string // the operationId: the name the function is deployed by
	Folder   string // the first tag: the folder under functions/
}

// Operations reads the API document: one operation for each path and method, in the order of their paths.
func Operations(file string) ([]Operation, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true // one document borrows the other's schemas
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
