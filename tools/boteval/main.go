// Command boteval measures the part of the bot detector that reads one request alone, the user
// agent and the header set, on lists of clients that are known to be bots or people. It keeps
// nothing of what it reads.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage: ./dev bots [--bots FILE…] [--humans FILE…] [--headers FILE…] [--log FILE] [--json] [--rows]

Prints recall and false positives of the bot detector, by default on the lists in
../shared/data/useragents. --rows prints every misclassified row; --json prints the counts alone.
`

func main() { command.Main("bots", run) }

func run(_ context.Context, args []string) error {
	if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
		fmt.Print(usage)
		return nil
	}
	o, err := parseArgs(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, usage)
		return command.ErrUsage
	}
	if o.Root == "" {
		if o.Root, err = repository.Find(); err != nil {
			return err
		}
	}
	o.Out = os.Stdout
	return evaluate(o)
}
