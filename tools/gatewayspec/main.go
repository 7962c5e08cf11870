// Command gatewayspec writes the configuration of the deployed API Gateway from the public API
// document.
package main

import (
	"context"
	"os"
	"path/filepath"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage: ./dev gateway

Writes terraform/gateway.openapi.yaml.tftpl, the document of the deployed gateway, from
api/consumer.openapi.yaml.
`

func main() { command.Main("gateway", run) }

func run(_ context.Context, args []string) error {
	set := command.NewFlags(usage)
	set.RootFlag()
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return set.Wrong("unexpected argument %q", set.Arg(0))
	}
	root, err := set.Root()
	if err != nil {
		return err
	}
	document, err := configTemplate(filepath.Join(root, "api", "consumer.openapi.yaml"))
	if err != nil {
		return err
	}
	path := filepath.Join(root, "terraform", "gateway.openapi.yaml.tftpl")
	if err := os.WriteFile(path+".new", document, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
