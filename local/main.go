// Command local runs the whole service on one machine, for those who work on it: stores, sandbox upstreams, functions
// and gateway. It is never deployed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/bench"
	"melmastoon.ghasi.io/bff-consumer/local/bots"
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/oncall"
	"melmastoon.ghasi.io/bff-consumer/local/pack"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/local/soak"
)

// usage names what a person types: dev runs this command.
const usage = `usage:
  ./dev run [--dataset FILE] [--port 8080] [--state DIR]      the whole system
            [--retry-least 100ms] [--retry-most 10s]          how long a message waits after a push that failed
            [--page local/web/static]                         the page from its files, to change it while it runs
  ./dev run --only FOLDER --port N [--state DIR]              one function folder, beside a system that runs
  ./dev migrate [--state DIR]                                 the newest schema for its database
  ./dev soak [--mutations 200000] [--kills 100] [--rate 2500] [--seed N]
                                                              events out while everything is killed
  ./dev outbox list | replay | park [--state DIR]             the outbox, for the team on call
  ./dev bench [--round 2s] [--rounds 5] [--connections 16] [--volatile] [--only relay|mint|costs]
                                                              the benchmarks of docs/performance.md; --volatile: of a Postgres
                                                              that does not wait for its disk
  ./dev bench coldstart [--starts 31] [--only FOLDER,…]       from the start of a process to its first answer
  ./dev pack FOLDER | all [--out DIR] [--built DIR]           the archives that are deployed, in dist; and their programs
` + bots.Usage

// errUsage has been explained already.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	if args[0] == "bots" {
		return runBotEval(args[1:])
	}
	o := server.Options{Out: os.Stdout}
	set := flag.NewFlagSet("local "+args[0], flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	set.StringVar(&o.Root, "root", "", "the repository; found from the working directory when empty")
	set.StringVar(&o.State, "state", "", "directory of what outlives a run; .local in the repository when empty")
	b := bench.Options{Out: os.Stdout}
	k := soak.Options{Out: os.Stdout}
	var only string
	switch args[0] {
	case "run":
		set.StringVar(&o.Dataset, "dataset", "", "file of accommodations; invented ones when empty")
		set.StringVar(&o.PageDir, "page", "", "folder of the page's files, for those who change them; those in the binary when empty")
		set.IntVar(&o.Port, "port", 8080, "port of the gateway; 0 for any")
		set.DurationVar(&o.Backoff.Min, "retry-least", pubsub.DefaultBackoff.Min, "wait after the first push that failed")
		set.DurationVar(&o.Backoff.Max, "retry-most", pubsub.DefaultBackoff.Max, "longest wait after a push that failed")
		set.StringVar(&only, "only", "", "serve one folder under functions/ against a system that runs")
	case "migrate":
	case "gateway": // ./dev gateway keeps what it prints
	case "bench":
		set.DurationVar(&b.Round, "round", 2*time.Second, "how long each server is loaded at a time")
		set.IntVar(&b.Rounds, "rounds", 5, "how often")
		set.IntVar(&b.Connections, "connections", 16, "clients at once")
		set.StringVar(&b.Only, "only", "", "relay: the way of events out; mint: a mint beside the bare transaction; costs: of one request of each kind; with coldstart: folders, comma between them")
		set.IntVar(&b.Starts, "starts", 31, "of each function, with coldstart")
		set.BoolVar(&b.Volatile, "volatile", false, "a Postgres that does not wait for its disk, which the platform's does")
	case "soak":
		set.IntVar(&k.Mutations, "mutations", 200_000, "to be committed")
		set.IntVar(&k.Kills, "kills", 100, "of writers and relays")
		set.IntVar(&k.Rate, "rate", 2500, "mutations per second at most")
		set.Uint64Var(&k.Seed, "seed", uint64(time.Now().UnixNano()), "of who is killed when, and what the broker does")
	case "soak-child": // started by soak, not by people
		return soak.RunChild(ctx)
	case "outbox":
		return runOutbox(ctx, args[1:])
	case "pack":
		return runPack(ctx, args[1:])
	case "bench-server": // started by bench, not by people
		return bench.Serve()
	default:
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	err := set.Parse(args[1:])
	cold := err == nil && args[0] == "bench" && set.Arg(0) == "coldstart"
	if cold {
		err = set.Parse(set.Args()[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return errUsage
	case set.NArg() > 0:
		return usageError("what is %q?", set.Arg(0))
	case o.Port < 0 || o.Port > 65535:
		return usageError("--port is %d, not 0 to 65535", o.Port)
	case o.Backoff.Min < 0 || o.Backoff.Max < o.Backoff.Min:
		return usageError("--retry-least is %v, --retry-most %v", o.Backoff.Min, o.Backoff.Max)
	case args[0] == "soak" && (k.Mutations < 10 || k.Kills < 0 || k.Rate < 100):
		return usageError("too few for a trial: --mutations at least 10, --kills 0, --rate 100")
	case !cold && !slices.Contains([]string{"", "relay", "mint", "costs"}, b.Only):
		return usageError("--only is %q, not relay, mint or costs", b.Only)
	case args[0] == "bench" && b.Starts < 1:
		return usageError("--starts is %d", b.Starts)
	case only != "" && !isSet(set, "port"):
		return usageError("--only needs --port: the port of this instance")
	}
	if o.Root == "" {
		var err error
		if o.Root, err = findRepository(); err != nil {
			return err
		}
	}
	b.Root = o.Root
	switch {
	case cold:
		return bench.ColdStart(ctx, b)
	case args[0] == "bench":
		return bench.Run(ctx, b)
	case args[0] == "soak":
		_, err := soak.Run(ctx, k)
		return err
	case args[0] == "migrate":
		return server.Migrate(ctx, o)
	case args[0] == "gateway":
		document, err := gateway.ConfigTemplate(filepath.Join(o.Root, "api", "consumer.openapi.yaml"))
		if err == nil {
			_, err = os.Stdout.Write(document)
		}
		return err
	case only != "":
		return server.RunFolder(ctx, o, only)
	default:
		return server.Run(ctx, o)
	}
}

// runBotEval has arguments of its own kind: files without number.
func runBotEval(args []string) error {
	if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
		fmt.Fprint(os.Stderr, usage)
		return nil
	}
	o, err := bots.ParseArgs(args)
	if err != nil {
		return usageError("%v", err)
	}
	if o.Root == "" {
		if o.Root, err = findRepository(); err != nil {
			return err
		}
	}
	o.Out = os.Stdout
	return bots.Run(o)
}

// runOutbox runs a command for the team on call. It needs no more than DATABASE_URL.
func runOutbox(ctx context.Context, args []string) error {
	var o server.Options
	if len(args) > 1 && args[0] == "--root" { // as dev says it
		o.Root, args = args[1], args[2:]
	}
	err := oncall.Run(ctx, args, func(state string) (string, error) {
		o.State = state
		return server.DatabaseURL(o)
	}, os.Stdout, os.Stderr)
	if errors.Is(err, oncall.ErrUsage) {
		return errUsage
	}
	return err
}

// runPack takes a folder's name before or after what goes with it.
func runPack(ctx context.Context, args []string) error {
	o := pack.Options{Log: os.Stdout}
	set := flag.NewFlagSet("local pack", flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	set.StringVar(&o.Root, "root", "", "the repository; found from the working directory when empty")
	set.StringVar(&o.OutDir, "out", "", "directory of the archives; dist in the repository when empty")
	set.StringVar(&o.BuildDir, "built", "", "directory of the programs, built as the platform does; none are built when empty")
	for rest := args; ; {
		switch err := set.Parse(rest); {
		case errors.Is(err, flag.ErrHelp):
			return nil
		case err != nil:
			return errUsage
		case set.NArg() > 0 && o.Function != "":
			return usageError("what is %q?", set.Arg(0))
		}
		if set.NArg() == 0 {
			break
		}
		o.Function, rest = set.Arg(0), set.Args()[1:]
	}
	if o.Function == "" {
		return usageError("pack what? A folder under functions/, or all")
	}
	if o.Root == "" {
		var err error
		if o.Root, err = findRepository(); err != nil {
			return err
		}
	}
	return pack.Run(ctx, o)
}

// usageError says what is wrong with the arguments, and what they may be.
func usageError(format string, args ...any) error {
	fmt.Fprintf(os.Stderr, format+"\n"+usage, args...)
	return errUsage
}

func isSet(set *flag.FlagSet, name string) (found bool) {
	set.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// findRepository is the nearest directory above that has a go.work.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this is not inside the repository: there is no go.work above")
		}
	}
}
