// Command pack writes the archives that are deployed, one for each folder under functions/. It
// never deploys anything.
package main

import (
	"context"
	"os"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/pack"
)

const usage = `usage: ./dev pack FOLDER | all [--out DIR] [--built DIR]

Writes the archive of a folder under functions/, or of every folder, to DIR/FOLDER.zip (default: dist).
With --built it also builds each archive as the platform does, into DIR/FOLDER/main. See docs/deploy.md.
`

func main() { command.Main("pack", run) }

func run(ctx context.Context, args []string) error {
	o, err := parseArgs(args)
	if err != nil {
		return err
	}
	return pack.Run(ctx, o)
}

// parseArgs accepts flags before and after the folder's name.
func parseArgs(args []string) (pack.Options, error) {
	o := pack.Options{Log: os.Stdout}
	set := command.NewFlags(usage)
	set.RootFlag()
	set.StringVar(&o.OutDir, "out", "", "")
	set.StringVar(&o.BuildDir, "built", "", "")
	for rest := args; ; {
		if err := set.Parse(rest); err != nil {
			return o, err
		}
		if set.NArg() == 0 {
			break
		}
		if o.Function != "" {
			return o, set.Wrong("unexpected argument %q", set.Arg(0))
		}
		o.Function, rest = set.Arg(0), set.Args()[1:]
	}
	if o.Function == "" {
		return o, set.Wrong("name a folder under functions/, or all")
	}
	var err error
	o.Root, err = set.Root()
	return o, err
}
