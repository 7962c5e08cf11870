package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

type harness struct {
	*testing.T
	url   string
	db    *pgx.Conn
	state string // value of --state of the last command
}

func newHarness(t *testing.T) *harness {
	d := &harness{T: t, url: pgtest.URL(t)}
	var err error
	if d.db, err = pgx.Connect(t.Context(), d.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.db.Close(t.Context()) })
	return d
}

func (d *harness) add(session, topic string, attempts int, parked bool) string {
	d.Helper()
	row := id.New(id.Event, time.Now())
	_, err := d.db.Exec(d.Context(), `
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class, attempts, last_error, due_at, parked_at)
		VALUES ($1::text, $2, '{"a": "canary"}', jsonb_build_object('orderingKey', $3::text), 'audit', $4, CASE WHEN $4 > 0 THEN E'NotFound:\nno topic' END,
		        CASE WHEN $4 > 0 THEN now() + interval '1 hour' END, CASE WHEN $5 THEN now() END)`, row, topic, session, attempts, parked)
	if err != nil {
		d.Fatal(err)
	}
	return row
}

func (d *harness) run(args ...string) (string, error) {
	var out bytes.Buffer
	err := execute(d.Context(), args, func(state string) (string, error) { d.state = state; return d.url, nil }, &out, &out)
	return out.String(), err
}

func TestList_FiltersRowsAndOmitsPayloads(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	if out, err := d.run("list"); err != nil || out != "0 rows wait; 0 are parked\n" {
		t.Errorf("list of an empty outbox: %q, %v", out, err)
	}
	waits, refused, parked := d.add("gms_a", "melmastoon.bff.consumer.t.one", 0, false), d.add("gms_b", "t.two", 3, false), d.add("gms_c", "t.two", 20, true)
	for args, want := range map[string][]string{
		"":                                      {waits, refused, parked},
		"--parked":                              {parked},
		"--refused":                             {refused, parked},
		"--session gms_a":                       {waits},
		"--topic t.one":                         {waits},
		"--topic t.o":                           {},
		"--topic melmastoon.bff.consumer.t.one": {waits},
		"--topic t.two":                         {refused, parked},
		"--topic t.two --limit 1":               {refused},
		"--session gms_a --parked":              {},
	} {
		out, err := d.run(append([]string{"list"}, strings.Fields(args)...)...)
		if err != nil || !strings.HasPrefix(out, "2 rows wait, the oldest for ") || !strings.Contains(out, "; 1 are parked\n") {
			t.Errorf("list %s: %q, %v; want 2 waiting rows and 1 parked", args, out, err)
		}
		if n := strings.Count(out, "evt_"); n != len(want) || strings.Contains(out, "canary") {
			t.Errorf("list %s: %d rows, want %d and no payload\n%s", args, n, len(want), out)
		}
		for _, id := range want {
			if !strings.Contains(out, id) {
				t.Errorf("list %s: row %s is missing\n%s", args, id, out)
			}
		}
	}
	out, err := d.run("list", "--json", "--parked")
	var row struct {
		ID, LastError string
		Attempts      int
		Payload       struct{ A string }
		Headers       struct{ OrderingKey string }
	}
	if err != nil || json.Unmarshal([]byte(out), &row) != nil || row.ID != parked || row.Attempts != 20 || row.Payload.A != "canary" || row.Headers.OrderingKey != "gms_c" {
		t.Errorf("output %q, error %v", out, err)
	}
}

func TestRun_PassesStateToDatabaseLookup(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	row := d.add("gms_a", "t", 0, false)
	for _, args := range [][]string{{"list", "--state", "/one"}, {"park", "--state", "/one", row}, {"replay", "--state", "/one", row}} {
		d.state = ""
		if out, err := d.run(args...); err != nil || d.state != "/one" {
			t.Errorf("%q asked for the database of state %q, want /one: %q, %v", args, d.state, out, err)
		}
	}
	if _, err := d.run("list"); err != nil || d.state != "" {
		t.Errorf("list without --state asked for state %q: %v", d.state, err)
	}
}

func TestRun_ReplaysAndParksNamedRows(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	one, two, waits := d.add("gms_a", "t", 20, true), d.add("gms_b", "t", 20, true), d.add("gms_c", "t", 3, false)
	state := func(id string) (s string) {
		if err := d.db.QueryRow(t.Context(), `SELECT attempts || ' ' || (due_at IS NULL) || ' ' || (parked_at IS NULL) FROM bff_consumer.outbox WHERE id = $1`, id).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if out, err := d.run("replay", one); err != nil || !strings.Contains(out, one+" will be tried again") || state(one) != "0 true true" || state(two) != "20 false false" {
		t.Errorf("replay of one row: %q, %v; rows %s and %s", out, err, state(one), state(two))
	}
	if out, err := d.run("park", waits, one); err != nil || !strings.Contains(out, "2 rows changed") || state(waits) != "3 false false" {
		t.Errorf("output %q, error %v", out, err)
	}
	if out, err := d.run("park", waits, "evt_nothing"); err == nil || !strings.Contains(out, waits+" left alone: published, parked already,") || !strings.Contains(out, "0 rows changed") {
		t.Errorf("output %q, error %v", out, err)
	}
	if out, err := d.run("replay", "evt_nothing"); err == nil || !strings.Contains(out, "evt_nothing left alone: published, or not in the outbox\n") {
		t.Errorf("output %q, error %v", out, err)
	}
	if out, err := d.run("replay", "--all-parked"); err != nil || !strings.Contains(out, "3 rows changed") || state(two) != "0 true true" {
		t.Errorf("output %q, error %v", out, err)
	}
}

func TestRun_InvalidArgumentsChangeNothing(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	row := d.add("gms_a", "t", 20, true)
	for _, args := range [][]string{
		nil, {"drop"}, {"replay"}, {"park"}, {"replay", "--all-parked", row}, {"park", "--all-parked"}, {"list", "x"}, {"list", "--limit", "0"},
		{"list", "--nothing"}, {"replay", row, "--all-parked"},
	} {
		if out, err := d.run(args...); !errors.Is(err, command.ErrUsage) || !strings.Contains(out, "usage:") {
			t.Errorf("%q: %q, %v; want ErrUsage and the usage text", args, out, err)
		}
	}
	if out, err := d.run("--help"); !errors.Is(err, flag.ErrHelp) || out != usage {
		t.Errorf("output %q, error %v", out, err)
	}
}
