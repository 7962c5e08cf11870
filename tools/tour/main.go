// Command tour runs the journeys of docs/tour.md step by step against a running development server.
// It prints each request, the expected answer and the actual answer, and restores every switch that
// it changes. It never reads the server's stores.
package main

import (
	"context"
	"os"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage: ./dev tour [--url http://127.0.0.1:8080]

Runs the journeys of docs/tour.md against a running development server.
Exit status 1: a response differs from the expected one.
`

func main() { command.Main("tour", run) }

func run(ctx context.Context, args []string) error {
	set := command.NewFlags(usage)
	url := set.String("url", "http://127.0.0.1:8080", "")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return set.Wrong("unexpected argument %q", set.Arg(0))
	}
	return runTour(ctx, *url, os.Stdout)
}
