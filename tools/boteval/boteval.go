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

// options are the arguments of the program.
type options struct {
	Root                  string   // of the repository
	Bots, Humans, Headers []string // files of clients; all empty and no Log means the reference data
	Log                   string   // an access log to replay; may be empty
	JSON                  bool     // print only the counts, as JSON
	Rows                  bool     // print every misclassified row
	Out                   io.Writer
}

// referenceFile returns the path of a file of the reference data, which are beside the repository.
func (o *options) referenceFile(name string) string {
	return filepath.Join(o.Root, "..", "shared", "data", "useragents", name)
}

// evaluate classifies the clients of all lists, replays the access log and prints the results.
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

// setDefaults names the reference data when no file is named. It fails when a list of the reference
// data is missing; a missing access log is left out.
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
			return fmt.Errorf("%s does not exist: name lists with --bots, --humans, --headers or --log", file)
		}
	}
	if _, err := os.Stat(o.Log); errors.Is(err, fs.ErrNotExist) {
		o.Log = ""
	}
	return nil
}

// printJSON prints the number of rows and of flagged rows of each list.
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
