package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
)

// backendDeadline is what the deployed gateway gives a function, in seconds: what an instance takes to start and the function gives itself, so that a guest
// hears the reason and not the gateway's.
const backendDeadline = "10.0"

var pathVariable = regexp.MustCompile(`\{([A-Za-z0-9]+)\}`)

// configTemplate is the description of the public API that API Gateway is given, as a template of Terraform's: the address of each
// function is ${address.<Function>}. It is OpenAPI 2.0 and says only what the gateway acts upon: which path and method
// goes where. Bodies and parameters are described in the API document, and checked by the functions.
//
// Beside the operations of that document each path has OPTIONS, for browsers that ask before they call from another origin, and
// HEAD where there is GET.
func configTemplate(file string) ([]byte, error) {
	operations, err := gateway.Operations(file)
	if err != nil {
		return nil, err
	}
	paths := map[string][]gateway.Operation{}
	var order []string
	for _, op := range operations {
		if paths[op.Path] == nil {
			order = append(order, op.Path)
		}
		paths[op.Path] = append(paths[op.Path], op)
		if op.Method == http.MethodGet {
			paths[op.Path] = append(paths[op.Path], gateway.Operation{Method: http.MethodHead, Path: op.Path, Function: op.Function})
		}
	}
	var b strings.Builder
	b.WriteString(templateHeader)
	for _, path := range order {
		fmt.Fprintf(&b, "  %s:\n", path)
		asked := gateway.Operation{Method: http.MethodOptions, Path: path, Function: paths[path][0].Function}
		for _, op := range append(slices.Clone(paths[path]), asked) {
			b.WriteString(templateEntry(op))
		}
	}
	return []byte(b.String()), nil
}

const templateHeader = `# Made by ./dev gateway from api/consumer.openapi.yaml.
swagger: "2.0"
info:
  title: Melmastoon consumer API
  version: "1.0"
schemes: [https]
produces: [application/json]
paths:
`

func templateEntry(op gateway.Operation) string {
	id := op.Function
	if op.Method == http.MethodHead || op.Method == http.MethodOptions {
		id += op.Method[:1] + strings.ToLower(op.Method[1:]) // an id of its own: SearchOptions
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    %s:\n      operationId: %s\n", strings.ToLower(op.Method), id)
	if names := pathVariable.FindAllStringSubmatch(op.Path, -1); len(names) > 0 {
		b.WriteString("      parameters:\n")
		for _, name := range names {
			fmt.Fprintf(&b, "        - {name: %s, in: path, required: true, type: string}\n", name[1])
		}
	}
	// By default the path is dropped and its variables become a query; and the caller's Authorization is replaced, of which
	// there is none here.
	fmt.Fprintf(&b, `      x-google-backend:
        address: ${address.%s}
        path_translation: APPEND_PATH_TO_ADDRESS
        deadline: %s
      responses:
        default: {description: See api/consumer.openapi.yaml.}
`, op.Function, backendDeadline)
	return b.String()
}
