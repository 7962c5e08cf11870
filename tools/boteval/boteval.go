// Package bots measures the part of the bot detector that looks at one request alone, the user agent and the header
// set, on lists of clients that are known to be bots or people. It keeps nothing of what it reads.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// options are what to read and what to tell.
type options struct {
	Root                  string   // of the repository
	Bots, Humans, Headers []string // files; when none is named, those of the reference data
	Log                   string   // an access log to replay
	JSON                  bool     // print the counts alone, for programs
	Rows                  bool     // print every row that was judged wrongly
	Out                   io.Writer
}

// referenceFile is where the reference data lie beside the repository.
func (o *options) referenceFile(name string) string {
	return filepath.Join(o.Root, "..", "shared", "data", "useragents", name)
}

// evaluate measures and prints.
func evaluate(o options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	var results []*result
	for _, of := range []struct {
		kind  string
		files []string
	}{{kindBots, o.Bots}, {kindHumans, o.Humans}, {kindHeaders, o.Headers}} {
		for _, file := range of.files {
			r, err := evaluateList(file, of.kind)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
	}
	if o.JSON {
		return printJSON(o.Out, results)
	}
	if err := printLists(o.Out, results, o.Rows); err != nil {
		return err
	}
	if o.Log == "" {
		return nil
	}
	return replay(o.Out, o.Log)
}

// setDefaults fills in the reference data where nothing is named.
func (o *options) setDefaults() error {
	if len(o.Bots)+len(o.Humans)+len(o.Headers) > 0 || o.Log != "" {
		return nil
	}
	o.Bots = []string{o.referenceFile("bots.jsonl")}
	o.Humans = []string{o.referenceFile("humans.jsonl.gz"), o.referenceFile("humans-weighted.jsonl.gz")}
	o.Headers = []string{o.referenceFile("browser-header-sets.jsonl")}
	o.Log = o.referenceFile("access-log-2015.jsonl.gz")
	for _, file := range slices.Concat(o.Bots, o.Humans, o.Headers) {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there: name lists with --bots, --humans, --headers or --log", file)
		}
	}
	if _, err := os.Stat(o.Log); errors.Is(err, fs.ErrNotExist) {
		o.Log = ""
	}
	return nil
}

func printJSON(out io.Writer, results []*result) error {
	type list struct {
		File    string `json:"file"`
		Kind    string `json:"kind"`
		Rows    int    `json:"rows"`
		Flagged int    `json:"flagged"`
	}
	lists := []list{}
	for _, r := range results {
		lists = append(lists, list{r.file, r.kind, r.rows, r.flagged})
	}
	if err := json.MarshalWrite(out, map[string]any{"lists": lists}, jsontext.Multiline(false)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}
