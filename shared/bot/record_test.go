package bot_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// insertRecord writes an entry in one round trip.
func insertRecord(t *testing.T, db *pgxpool.Pool, e bot.Entry) {
	t.Helper()
	batch := &pgx.Batch{}
	if _, err := bot.Record(batch, e); err != nil {
		t.Fatal(err)
	}
	if err := db.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
}

// testEntry returns the entry of a fast tool.
func testEntry(session string) bot.Entry {
	return bot.Entry{
		Client: client("gms_somebody"), AgentHash: hash("agent"), Session: session, Action: bot.Challenge, At: noon,
		RequestID: id.New(id.Request, noon), Instance: "search-1",
		Score: bot.Evaluate(bot.Evidence{
			Agent: agent.Classify("python-requests/2.32"), Anomaly: "no-accept",
			History: bot.History{Cadence: bot.Cadence{Group: bot.RequestCounts{Burst: 14, Minute: 14}, SinceCookie: -1}},
		}),
	}
}

// rows returns the rows of bot_score_log as text.
func rows(t *testing.T, db *pgxpool.Pool) []string {
	t.Helper()
	found, _ := db.Query(t.Context(), `
		SELECT concat_ws(' ', coalesce(guest_session_id, '-'), encode(fingerprint_hash, 'hex'), encode(ip_hash, 'hex'),
		       encode(user_agent_hash, 'hex'), score, verdict, signals, action_taken, evaluated_at AT TIME ZONE 'UTC')
		FROM bff_consumer.bot_score_log ORDER BY id`)
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// recorded returns the messages in the outbox.
func recorded(t *testing.T, db *pgxpool.Pool) []string {
	t.Helper()
	found, _ := db.Query(t.Context(), `SELECT payload::text FROM bff_consumer.outbox ORDER BY id`)
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecord_WritesRowAndEvent(t *testing.T) {
	t.Parallel()
	db, session := pgtest.New(t), id.New(id.Session, noon)
	e := testEntry(session)
	insertRecord(t, db, e)
	hex := func(of string) string { return strings.TrimPrefix(hash(of), "sha256:") }
	want := session + " " + hex("fingerprint") + " " + hex("address") + " " + hex("agent") + ` 1 bot [` +
		`{"kind": "ua-pattern", "detail": "tool-python-requests", "weight": 0.5}, {"kind": "cadence", "detail": "14 reqs/2s", "weight": 0.45}, ` +
		`{"kind": "header-anomaly", "detail": "no-accept", "weight": 0.15}] challenge 2026-11-21 12:00:00`
	if diff := cmp.Diff([]string{want}, rows(t, db)); diff != "" {
		t.Error(diff)
	}
	messages := recorded(t, db)
	if len(messages) != 1 {
		t.Fatalf("%d events, want 1", len(messages))
	}
	var message struct {
		Envelope struct{ Subject, SessionID, RequestID string }
		Payload  event.BotSuspected
	}
	if err := json.Unmarshal([]byte(messages[0]), &message); err != nil {
		t.Fatal(err)
	}
	p := message.Payload
	if p.GuestSessionID != session || p.Verdict != "bot" || p.ActionTaken != "challenge" || len(p.Signals) != 3 || p.FingerprintHash != hash("fingerprint") {
		t.Errorf("payload %+v, want the verdict bot with three signals of session %s", p, session)
	}
	if message.Envelope.SessionID != session || message.Envelope.RequestID != e.RequestID {
		t.Errorf("envelope %+v, want session %s and request %s", message.Envelope, session, e.RequestID)
	}
	validateMessage(t, messages[0])
}

// validateMessage checks a message against its schema, in the form in which the relay sends it.
func validateMessage(t *testing.T, message string) {
	t.Helper()
	var m map[string]map[string]any
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		t.Fatal(err)
	}
	m["envelope"]["publishedAt"] = m["envelope"]["occurredAt"]
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.ValidateMessage(event.BotSuspected{}.Subject(), data); err != nil {
		t.Error(err)
	}
}

func TestRecord_WithoutSessionNamesNoSession(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	insertRecord(t, db, testEntry(""))
	if got := rows(t, db); len(got) != 1 || !strings.HasPrefix(got[0], "- ") {
		t.Errorf("rows %q, want one without a session id", got)
	}
	messages := recorded(t, db)
	if len(messages) != 1 || strings.Contains(messages[0], "gms_") {
		t.Fatalf("messages %q, want one without a session id", messages)
	}
	validateMessage(t, messages[0])
}

func TestRecord_OptedOutGuestEmitsNoEvent(t *testing.T) {
	for name, c := range map[string]struct {
		choice   string // row of session_choice after the session id; empty for no row
		optedOut bool
	}{
		"known to the caller":       {"", true},
		"known to Postgres only":    {"false, false, now(), NULL", false},
		"session cleared meanwhile": {"true, false, now(), now()", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, session := pgtest.New(t), id.New(id.Session, noon)
			if c.choice != "" {
				if _, err := db.Exec(t.Context(), `
				INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
				VALUES ('`+session+`', `+c.choice+`)`); err != nil {
					t.Fatal(err)
				}
			}
			e := testEntry(session)
			e.OptedOut = c.optedOut
			insertRecord(t, db, e)
			if got := rows(t, db); len(got) != 1 || !strings.HasPrefix(got[0], "- ") {
				t.Errorf("rows %q, want one without a session id", got)
			}
			if messages := recorded(t, db); len(messages) != 0 {
				t.Errorf("messages %q, want none", messages)
			}
		})
	}
}

func TestRecord_RejectsInvalidHash(t *testing.T) {
	t.Parallel()
	e := testEntry("")
	e.AgentHash = chrome
	batch := &pgx.Batch{}
	if _, err := bot.Record(batch, e); err == nil || batch.Len() != 0 {
		t.Errorf("error %v, %d statements; want an error and 0", err, batch.Len())
	}
}

func TestShouldRecord_OncePerMinute(t *testing.T) {
	t.Parallel()
	d := newHarness(nil)
	due := func(c bot.Client, v bot.Verdict, act bot.Action) (n int) {
		for range 100 {
			if d.ShouldRecord(c, v, act) {
				n++
			}
		}
		return n
	}
	c := client("")
	if due(c, bot.Human, bot.None) != 0 {
		t.Error("a human is recorded")
	}
	if first, other := due(c, bot.Suspect, bot.Challenge), due(client("gms_1"), bot.Suspect, bot.Challenge); first != 1 || other != 0 {
		t.Errorf("a suspect is recorded %d times and %d times with another session, want 1 and 0", first, other)
	}
	if due(c, bot.Bot, bot.HardBlock) != 1 || due(c, bot.Suspect, bot.None) != 1 {
		t.Error("another verdict or action is not recorded once")
	}
	d.time = d.time.Add(time.Minute)
	if due(c, bot.Suspect, bot.Challenge) != 1 {
		t.Error("a suspect is not recorded once a minute later")
	}
	n := 0
	for i := range 5000 {
		if d.ShouldRecord(bot.Client{Fingerprint: hash(fmt.Sprint(i)), Address: hash("address")}, bot.Suspect, bot.Challenge) {
			n++
		}
	}
	if n != 599 {
		t.Errorf("%d records of a client with changing fingerprints, want the remaining 599 of 600", n)
	}
	if d.time = d.time.Add(time.Minute); due(c, bot.Suspect, bot.Challenge) != 1 {
		t.Error("a suspect is not recorded in the minute after 600 records")
	}
}
