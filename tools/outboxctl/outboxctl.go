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

const usage = `usage:
  ./dev outbox list [--parked] [--refused] [--session gms_…] [--topic T] [--limit 50] [--json]
      Lists the events that are not published, the oldest first. Only --json prints payloads.
  ./dev outbox replay ID… | --all-parked
      Lets the relay try these events again, with a fresh count of attempts.
  ./dev outbox park ID…
      Gives these events up until a replay. Later events of their sessions are published without them.

Flags come before ids. A topic may be short: session.started.v1. The database is DATABASE_URL, or that of
the running development server; with --state DIR that of the server with this state directory.
`

// subjectPrefix starts the topic of every published event. Arguments may leave it out.
const subjectPrefix = "melmastoon.bff.consumer."

const timeout = time.Minute // of one command; some filters have no index, in a table of up to a million rows

// execute runs the command in args on the outbox. It calls database for the URL after the check of
// args; state is the value of --state. A command uses one connection and takes at most one minute.
// execute returns command.ErrUsage for wrong arguments, and an error when a named row did not
// change.
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
		return set.Wrong("name a command: list, replay or park")
	default:
		return set.Wrong("unknown command %q", verb)
	}
	switch err := set.Parse(args); {
	case err != nil:
		return err
	case verb == "list" && set.NArg() > 0:
		return set.Wrong("unexpected argument %q", set.Arg(0))
	case verb == "list" && f.Limit < 1:
		return set.Wrong("--limit is %d, less than 1", f.Limit)
	case verb != "list" && all == (set.NArg() > 0):
		return set.Wrong("%s needs the ids of rows, or --all-parked with replay", verb)
	}
	for _, arg := range set.Args() {
		if !strings.HasPrefix(arg, "evt_") {
			return set.Wrong("%q is not the id of an event; flags come before ids", arg)
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
		return printChanges(out, "will be tried again by the next relay run", "published, or not in the outbox", set.Args(), done, err)
	default:
		done, err := outbox.Park(ctx, db, set.Args())
		return printChanges(out, "parked", "published, parked already, or not in the outbox", set.Args(), done, err)
	}
}

// list prints the number and age of waiting rows, the number of parked rows, and the rows of the
// filter.
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
	backlog, err := outbox.ReadBacklog(ctx, db)
	if err != nil {
		return err
	}
	now := time.Now()
	fmt.Fprintf(out, "%d rows wait", backlog.Depth)
	if !backlog.Oldest.IsZero() {
		fmt.Fprintf(out, ", the oldest for %s", age(now, backlog.Oldest))
	}
	fmt.Fprintf(out, "; %d are parked\n", backlog.Parked)
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

// printChanges prints a line for each named id: the change, or orElse if the row did not change. In
// the second case printChanges returns an error.
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

// oneLine joins the lines of a broker's error text, because a line break would break the table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
