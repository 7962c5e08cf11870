// Command outboxctl lists the rows of the outbox that are not published, and replays or parks rows
// (docs/runbooks/outbox.md). It needs a database only: DATABASE_URL, or the one of a running
// development server.
package main

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

func main() { command.Main("outbox", run) }

func run(ctx context.Context, args []string) error {
	set := command.NewFlags(usage)
	set.RootFlag()
	if err := set.Parse(args); err != nil { // stops at the verb
		return err
	}
	return execute(ctx, set.Args(), func(state string) (string, error) {
		return databaseURL(state, set.Root)
	}, set.Out, set.Errors)
}
