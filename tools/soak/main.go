// Command soak commits mutations and publishes their events while it kills the processes that do so
// and while the Pub/Sub broker fails. It has stores of its own and compares the published events
// with the committed mutations.
package main

import (
	"context"
	"os"
	"time"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage: ./dev soak [--mutations 200000] [--kills 100] [--rate 2500] [--seed N]

Publishes the events of committed mutations while writers and relays are killed and the broker fails.
--rate is the upper bound of mutations per second. --seed repeats the random choices of a trial.
Exit status 1: an event was lost, invented, out of order or sent twice too often.
`

func main() { command.Main("soak", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == childVerb {
		return runChild(ctx)
	}
	o, err := parseArgs(args)
	if err != nil {
		return err
	}
	_, err = runTrial(ctx, o)
	return err
}

func parseArgs(args []string) (options, error) {
	o := options{Out: os.Stdout}
	set := command.NewFlags(usage)
	set.IntVar(&o.Mutations, "mutations", 200_000, "")
	set.IntVar(&o.Kills, "kills", 100, "")
	set.IntVar(&o.Rate, "rate", 2500, "")
	set.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	switch {
	case set.NArg() > 0:
		return o, set.Wrong("unexpected argument %q", set.Arg(0))
	case o.Mutations < 10 || o.Kills < 0 || o.Rate < 100:
		return o, set.Wrong("too little for a trial: --mutations is at least 10, --kills 0, --rate 100")
	}
	return o, nil
}
