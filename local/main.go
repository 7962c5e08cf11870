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
	"melmastoon.ghasi.io/bff-consumer/local/system"
)

// usage names what a person types: dev runs this command.
const usage = `usage:
  ./dev run [--dataset FILE] [--port 8080] [--state DIR]      the whole system
  ./dev run --only FOLDER --port N [--state DIR]              one function folder, beside a system that runs
  ./dev migrate [--state DIR]                                 the newest schema for its database
  ./dev bench [--round 2s] [--rounds 5] [--connections 16]    the benchmarks of docs/performance.md
` + bots.Usage

// errUsage has been explained already.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := command(ctx, os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	if args[0] == "bots" {
		return measureBots(args[1:])
	}
	o := system.Options{Out: os.Stdout}
	set := flag.NewFlagSet("local "+args[0], flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	set.StringVar(&o.Root, "root", "", "the repository; found from the working directory when empty")
	set.StringVar(&o.State, "state", "", "directory of what outlives a run; .local in the repository when empty")
	b := bench.Options{Out: os.Stdout}
	var only string
	switch args[0] {
	case "run":
		set.StringVar(&o.Dataset, "dataset", "", "file of accommodations; invented ones when empty")
		set.IntVar(&o.Port, "port", 8080, "port of the gateway; 0 for any")
		set.StringVar(&only, "only", "", "serve one folder under functions/ against a system that runs")
	case "migrate":
	case "bench":
		set.DurationVar(&b.Round, "round", 2*time.Second, "how long each server is loaded at a time")
		set.IntVar(&b.Rounds, "rounds", 5, "how often")
		set.IntVar(&b.Connections, "connections", 16, "clients at once")
	case "bench-server": // started by bench, not by people
		return bench.Serve()
	default:
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	err := set.Parse(args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return errUsage
	case set.NArg() > 0:
		return explain("what is %q?", set.Arg(0))
	case o.Port < 0 || o.Port > 65535:
		return explain("--port is %d, not 0 to 65535", o.Port)
	case only != "" && !given(set, "port"):
		return explain("--only needs --port: the port of this instance")
	}
	if o.Root == "" {
		var err error
		if o.Root, err = repository(); err != nil {
			return err
		}
	}
	switch {
	case args[0] == "bench":
		return bench.Run(ctx, b)
	case args[0] == "migrate":
		return system.Migrate(ctx, o)
	case only != "":
		return system.Only(ctx, o, only)
	default:
		return system.Run(ctx, o)
	}
}

// measureBots has arguments of its own kind: files without number.
func measureBots(args []string) error {
	if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
		fmt.Fprint(os.Stderr, usage)
		return nil
	}
	o, err := bots.Parse(args)
	if err != nil {
		return explain("%v", err)
	}
	if o.Root == "" {
		if o.Root, err = repository(); err != nil {
			return err
		}
	}
	o.Out = os.Stdout
	return bots.Run(o)
}

// explain says what is wrong with the arguments, and what they may be.
func explain(format string, args ...any) error {
	fmt.Fprintf(os.Stderr, format+"\n"+usage, args...)
	return errUsage
}

func given(set *flag.FlagSet, name string) (found bool) {
	set.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// repository is the nearest directory above that has a go.work.
func repository() (string, error) {
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
