// Package command has the flags, usage texts and exit status of the programs in tools/. It has no
// code of a particular program.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// ErrUsage means wrong arguments. The program has printed the reason and the usage text.
var ErrUsage = errors.New("usage")

// Main runs a program and exits. The status is 0 on success and after -h, 2 for wrong arguments, 1
// for any other error, which Main prints. SIGINT and SIGTERM cancel the context; a second signal
// kills the process.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	switch err := run(ctx, os.Args[1:]); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, ErrUsage):
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Flags is a flag set with the program's usage text, which -h prints.
type Flags struct {
	*flag.FlagSet
	Usage       string
	Out, Errors io.Writer // of -h; of messages about wrong arguments

	root string
}

// NewFlags returns a flag set that writes to stdout and stderr.
func NewFlags(usage string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError), Usage: usage, Out: os.Stdout, Errors: os.Stderr}
	f.FlagSet.SetOutput(io.Discard) // Parse prints
	return f
}

// RootFlag adds --root, which names the repository's directory. ./dev sets it.
func (f *Flags) RootFlag() { f.StringVar(&f.root, "root", "", "") }

// Root returns the value of --root, or else the repository around the working directory. Root
// fails without both.
func (f *Flags) Root() (string, error) {
	if f.root != "" {
		return f.root, nil
	}
	return repository.Find()
}

// Parse parses flags. For -h it prints the usage text and returns flag.ErrHelp; for wrong arguments
// it returns ErrUsage.
func (f *Flags) Parse(args []string) error {
	switch err := f.FlagSet.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(f.Out, f.Usage)
		return flag.ErrHelp
	case err != nil:
		return f.Wrong("%v", err)
	}
	return nil
}

// Wrong prints a reason and the usage text, and returns ErrUsage.
func (f *Flags) Wrong(format string, args ...any) error {
	fmt.Fprintf(f.Errors, format+"\n"+f.Usage, args...)
	return ErrUsage
}
