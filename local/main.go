// Command local is the development server: the whole service on one machine, with stores, sandbox
// upstreams, functions and gateway. It is never deployed. Programs with another purpose are in
// tools/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	_ "melmastoon.ghasi.io/bff-consumer/local/functions"
	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/local/server"
)

// usage is the usage text of both verbs: ./dev runs this program.
const usage = `usage:
  ./dev run [--dataset FILE] [--port 8080] [--state DIR]
            [--retry-least 100ms] [--retry-most 10s] [--page local/web/static]
      Runs the whole service on this machine; Ctrl-C stops it.
      --dataset      file of accommodations; without it the embedded, invented ones
      --port         port of the gateway on 127.0.0.1; 0 chooses a free one
      --state        directory of everything that outlives a run (default: .local); another directory and
                     port run another service beside the first
      --retry-least, --retry-most
                     wait after the first failed push of a message, and the longest wait
      --page         serves the page from its files, so that a change shows on reload
  ./dev run --only FOLDER --port N [--state DIR]
      Runs the functions of one folder as a process beside a running service.
  ./dev migrate [--state DIR]
      Brings DATABASE_URL, or the local database, to the newest schema.

Private Postgres and Redis servers run below .local or --state. DATABASE_URL, REDIS_ADDR and
PUBSUB_EMULATOR_HOST replace them with others.
`

// errUsage means wrong arguments. The reason and the usage text have been printed.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usageError("name a verb")
	}
	o := server.Options{Out: os.Stdout}
	var only string
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&o.Root, "root", "", "") // ./dev sets it
	set.StringVar(&o.State, "state", "", "")
	switch args[0] {
	case "run":
		set.StringVar(&o.Dataset, "dataset", "", "")
		set.StringVar(&o.PageDir, "page", "", "")
		set.IntVar(&o.Port, "port", 8080, "")
		set.DurationVar(&o.Backoff.Min, "retry-least", pubsub.DefaultBackoff.Min, "")
		set.DurationVar(&o.Backoff.Max, "retry-most", pubsub.DefaultBackoff.Max, "")
		set.StringVar(&only, "only", "", "")
	case "migrate":
	default:
		return usageError("unknown verb %q", args[0])
	}
	err := set.Parse(args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		return nil
	case err != nil:
		return usageError("%v", err)
	case set.NArg() > 0:
		return usageError("unexpected argument %q", set.Arg(0))
	case o.Port < 0 || o.Port > 65535:
		return usageError("--port is %d, not 0 to 65535", o.Port)
	case o.Backoff.Min < 0 || o.Backoff.Max < o.Backoff.Min:
		return usageError("--retry-least is %v, --retry-most %v", o.Backoff.Min, o.Backoff.Max)
	case only != "" && !isSet(set, "port"):
		return usageError("--only needs --port: the port of this instance")
	}
	if o.Root == "" {
		if o.Root, err = repository.Find(); err != nil {
			return err
		}
	}
	switch {
	case args[0] == "migrate":
		return server.Migrate(ctx, o)
	case only != "":
		return server.RunFolder(ctx, o, only)
	default:
		return server.Run(ctx, o)
	}
}

// usageError prints a reason and the usage text, and returns errUsage.
func usageError(format string, args ...any) error {
	fmt.Fprintf(os.Stderr, format+"\n"+usage, args...)
	return errUsage
}

func isSet(set *flag.FlagSet, name string) (found bool) {
	set.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
