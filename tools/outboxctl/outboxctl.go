// Package oncall owns the commands for the team on call: what is in the outbox, and what to do with it. It changes
// nothing that it does not say.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

// usage is what a person may type.
const usage = `usage:
  ./dev outbox list [--parked] [--refused] [--session gms_…] [--topic T] [--limit 50] [--json]
                                             what was not published, the oldest first; payloads only with --json
  ./dev outbox replay ID… | --all-parked     try again, as if for the first time
  ./dev outbox park ID…                      give up, until a replay; the session goes on without them

Flags come before ids. A topic may be short: session.started.v1.
The database is that of DATABASE_URL, or of the local system that runs: with --state DIR of the one that was started so.
`

// subjectPrefix is what the topics of our subjects begin with. People leave it out.
const subjectPrefix = "melmastoon.bff.consumer."

const timeout = time.Minute // a table of a million rows has no index for every filter

// execute does what args say with the outbox of a database; database is asked for its URL once args are understood, and told
// of whose state, "" when args do not say it.
func execute(ctx context.Context, args []string, database func(state string) (string, error), out, complaints io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	set := command.NewFlags(usage)
	set.Out, set.Errors = out, complaints
	var f outbox.Filter
	var asJSON, all bool
	var state, topic string
	set.StringVar(&state, "state", "", "")
	switch verb {
	case "list":
		set.BoolVar(&f.Parked, "parked", false, "")
		set.BoolVar(&f.Rejected, "refused", false, "")
		set.StringVar(&f.Session, "session", "", "")
		set.StringVar(&topic, "topic", "", "")
		set.IntVar(&f.Limit, "limit", 50, "")
		set.BoolVar(&asJSON, "json", false, "")
	case "replay":
		set.BoolVar(&all, "all-parked", false, "")
	case "park":
	case "-h", "--help", "help":
		return set.Parse([]string{"-h"})
	case "":
		return set.Wrong("outbox: which command?")
	default:
		return set.Wrong("outbox %s: no such command", verb)
	}
	switch err := set.Parse(args); {
	case err != nil:
		return err
	case verb == "list" && set.NArg() > 0:
		return set.Wrong("what is %q?", set.Arg(0))
	case verb == "list" && f.Limit < 1:
		return set.Wrong("--limit is %d", f.Limit)
	case verb != "list" && all == (set.NArg() > 0):
		return set.Wrong("%s which rows?", verb)
	}
	for _, arg := range set.Args() {
		if !strings.HasPrefix(arg, "evt_") {
			return set.Wrong("%q is no event's id, and flags come before ids", arg)
		}
	}
	if topic != "" {
		f.Topics = []string{topic, subjectPrefix + topic}
	}
	url, err := database(state)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	db, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	switch verb {
	case "list":
		return list(ctx, db, f, asJSON, out)
	case "replay":
		done, err := outbox.Replay(ctx, db, set.Args(), all)
		return printChanges(out, "will be tried again by the next relay that looks", "published, or not in the outbox", set.Args(), done, err)
	default:
		done, err := outbox.Park(ctx, db, set.Args())
		return printChanges(out, "parked", "published, parked already, or not in the outbox", set.Args(), done, err)
	}
}

func list(ctx context.Context, db *pgxpool.Pool, f outbox.Filter, asJSON bool, out io.Writer) error {
	entries, err := outbox.List(ctx, db, f)
	if err != nil {
		return err
	}
	if asJSON {
		lines := jsontext.NewEncoder(out)
		for _, e := range entries {
			err := json.MarshalEncode(lines, struct {
				outbox.Entry
				Headers jsontext.Value `json:"headers"`
				Payload jsontext.Value `json:"payload"`
			}{e, jsontext.Value(e.Headers), jsontext.Value(e.Payload)})
			if err != nil {
				return err
			}
		}
		return nil
	}
	standing, err := outbox.ReadBacklog(ctx, db)
	if err != nil {
		return err
	}
	now := time.Now()
	fmt.Fprintf(out, "%d rows wait", standing.Depth)
	if !standing.Oldest.IsZero() {
		fmt.Fprintf(out, ", the oldest for %s", age(now, standing.Oldest))
	}
	fmt.Fprintf(out, "; %d are parked\n", standing.Parked)
	if len(entries) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nID\tSUBJECT\tSESSION\tAGE\tREFUSALS\tSTATE\tLAST ERROR")
	for _, e := range entries {
		state := "waits"
		switch {
		case e.ParkedAt != nil:
			state = "parked " + age(now, *e.ParkedAt) + " ago"
		case e.DueAt != nil && e.DueAt.After(now):
			state = "again in " + age(*e.DueAt, now)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", e.ID, strings.TrimPrefix(e.Topic, subjectPrefix), cmp.Or(e.Session, "-"),
			age(now, e.CreatedAt), e.Attempts, state, cmp.Or(oneLine(e.LastError), "-"))
	}
	return t.Flush()
}

func printChanges(out io.Writer, what, orElse string, named, done []string, err error) error {
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, id := range done {
		found[id] = true
		fmt.Fprintf(out, "%s %s\n", id, what)
	}
	missing := 0
	for _, id := range named {
		if !found[id] {
			missing++
			fmt.Fprintf(out, "%s left alone: %s\n", id, orElse)
		}
	}
	fmt.Fprintf(out, "%d rows changed\n", len(done))
	if missing > 0 {
		return fmt.Errorf("%d of %d rows were left alone", missing, len(named))
	}
	return nil
}

func age(now, then time.Time) string {
	d := now.Sub(then).Round(time.Second)
	if d >= 48*time.Hour {
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
	return d.String()
}

// oneLine keeps what a broker said from breaking the table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
