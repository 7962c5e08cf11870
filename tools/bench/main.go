// Command bench measures the functions beside reference servers, each in a process of its own,
// under load in turns on one machine (docs/performance.md). Its ratios hold elsewhere, its rates do
// not.
package main

import (
	"context"
	"os"
	"slices"
	"time"

	_ "melmastoon.ghasi.io/bff-consumer/local/functions" // of the processes that bench starts
	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage:
  ./dev bench [--round 2s] [--rounds 5] [--connections 16] [--volatile] [--only relay|mint|costs]
      The benchmarks of docs/performance.md. --round is the time of load per server and round;
      --only relay measures event publishing, mint handoff creation, costs one request of each kind.
  ./dev bench coldstart [--starts 31] [--only FOLDER,…] [--volatile]
      Time from the start of each packed function's process to its first answer.

--volatile starts a Postgres that does not wait for its disk; the platform's Postgres waits.
`

func main() { command.Main("bench", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == childVerb {
		return serveChild()
	}
	o, coldStart, err := parseArgs(args)
	if err != nil {
		return err
	}
	if coldStart {
		return measureColdStart(ctx, o)
	}
	return runBenchmarks(ctx, o)
}

func parseArgs(args []string) (o options, coldStart bool, err error) {
	o.Out = os.Stdout
	set := command.NewFlags(usage)
	set.RootFlag()
	set.DurationVar(&o.Round, "round", 2*time.Second, "")
	set.IntVar(&o.Rounds, "rounds", 5, "")
	set.IntVar(&o.Connections, "connections", 16, "")
	set.StringVar(&o.Only, "only", "", "")
	set.IntVar(&o.Starts, "starts", 31, "")
	set.BoolVar(&o.Volatile, "volatile", false, "")
	if err := set.Parse(args); err != nil {
		return o, false, err
	}
	if coldStart = set.Arg(0) == "coldstart"; coldStart {
		if err := set.Parse(set.Args()[1:]); err != nil {
			return o, true, err
		}
	}
	switch {
	case set.NArg() > 0:
		return o, coldStart, set.Wrong("unexpected argument %q", set.Arg(0))
	case !coldStart && !slices.Contains([]string{"", "relay", "mint", "costs"}, o.Only):
		return o, coldStart, set.Wrong("--only is %q, not relay, mint or costs", o.Only)
	case o.Starts < 1:
		return o, coldStart, set.Wrong("--starts is %d, less than 1", o.Starts)
	}
	o.Root, err = set.Root()
	return o, coldStart, err
}
