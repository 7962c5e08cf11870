package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
)

// backendDeadline is the gateway's deadline for a function in seconds. It covers the start of an
// instance and the function's own deadline, so that the guest receives the function's problem
// response and not the gateway's.
const backendDeadline = "10.0"

var pathVariable = regexp.MustCompile(`\{([A-Za-z0-9]+)\}`)

// configTemplate returns the configuration of API Gateway for an OpenAPI document, as a Terraform
// template: the address of a function is ${address.<Function>}. It is OpenAPI 2.0 and has only the
// parts that the gateway acts upon, the function of each path and method. The functions themselves
// check bodies and parameters.
//
// Besides the operations of the document each path has OPTIONS, for the preflight requests of
// browsers, and HEAD where it has GET.
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
		preflight := gateway.Operation{Method: http.MethodOptions, Path: path, Function: paths[path][0].Function}
		for _, op := range append(slices.Clone(paths[path]), preflight) {
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

// templateEntry returns the YAML of one operation.
func templateEntry(op gateway.Operation) string {
	id := op.Function
	if op.Method == http.MethodHead || op.Method == http.MethodOptions {
		id += op.Method[:1] + strings.ToLower(op.Method[1:]) // operation ids are unique: SearchOptions
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    %s:\n      operationId: %s\n", strings.ToLower(op.Method), id)
	if names := pathVariable.FindAllStringSubmatch(op.Path, -1); len(names) > 0 {
		b.WriteString("      parameters:\n")
		for _, name := range names {
			fmt.Fprintf(&b, "        - {name: %s, in: path, required: true, type: string}\n", name[1])
		}
	}
	// By default the gateway drops the path and turns its variables into a query. It also replaces
	// the caller's Authorization header, which this API does not use.
	fmt.Fprintf(&b, `      x-google-backend:
        address: ${address.%s}
        path_translation: APPEND_PATH_TO_ADDRESS
        deadline: %s
      responses:
        default: {description: See api/consumer.openapi.yaml.}
`, op.Function, backendDeadline)
	return b.String()
}
