package bot

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// Bounds of one instance. The bound for all clients together is needed because a client that
// changes its fingerprint with every request is a new client each time.
const (
	maxRecorded         = 16_384 // remembered keys
	maxRecordsPerMinute = 600    // of all clients
)

// recordKey is recorded at most once a minute.
type recordKey struct {
	group   string
	verdict Verdict
	action  Action
}

// minute is a number of minutes since 1970.
type minute int64

// budget counts the records of the current minute.
type budget struct {
	sync.Mutex
	minute minute
	used   int
}

// ShouldRecord reports whether the caller is to record a verdict now, and counts the record as
// written, also if the caller's write fails later. Each instance records a client group with the
// same verdict and action once per clock minute, and at most 600 records a minute in all; it never
// records humans. Beyond 16,384 remembered keys a key may be recorded again within the minute.
// ShouldRecord uses memory only, under a mutex of the Detector, and never fails: a rejected request
// has no second round trip to Redis, and records matter most without Redis. Safe for concurrent
// use.
func (d *Detector) ShouldRecord(c Client, v Verdict, act Action) bool {
	if v == Human {
		return false
	}
	now := minute(d.now().Unix() / 60)
	key := recordKey{c.groupKey(), v, act}
	d.budget.Lock()
	defer d.budget.Unlock()
	if last, ok := d.recorded.Get(key); ok && last == now {
		return false
	}
	if d.budget.minute != now {
		d.budget.minute, d.budget.used = now, 0
	}
	if d.budget.used >= maxRecordsPerMinute {
		return false
	}
	d.budget.used++
	d.recorded.Add(key, now)
	return true
}

// Entry is one verdict to record.
type Entry struct {
	Client    Client // its hashes are recorded, Client.Session is not
	AgentHash string // sha256:<hex>; session.Client.UserAgentHash
	Session   string // session of the guest if it existed before this request, else empty
	OptedOut  bool   // the guest is known to have opted out of telemetry
	Score     Score
	Action    Action
	At        time.Time

	RequestID, Traceparent, Instance string // for the event envelope
}

// Record adds the row of bot_score_log and the event bot_suspected.v1, two statements, to a batch,
// for a verdict above human. Record sends nothing: the batch costs the round trip, and errors of
// Postgres are errors of the batch. New ids take a mutex of the process for a moment. For a guest
// who opted out of telemetry, the row names no session and there is no event; the statements also
// check for an opt-out that only Postgres has.
//
// Record returns the event, which the caller may buffer if the batch fails without Postgres, or
// (nil, nil) for an opted-out guest. It returns an error for an invalid hash, an empty one
// included, and for a signal without a JSON form; then the batch is unchanged. If only the event
// has no JSON form (a NaN as Score.Value), Record returns the event with an error, and the batch
// has the row's statement: do not send the batch. A repeated call adds another row and event. Not
// safe for concurrent use of one batch.
func Record(batch *pgx.Batch, e Entry) ([]event.Event, error) {
	if e.OptedOut {
		e.Session = ""
	}
	signals, err := json.Marshal(e.Score.Signals)
	if err != nil {
		return nil, fmt.Errorf("bot: signals: %w", err)
	}
	hashes := [3][]byte{}
	for i, h := range []string{e.Client.Fingerprint, e.Client.Address, e.AgentHash} {
		if hashes[i], err = digest.Parse(h); err != nil {
			return nil, fmt.Errorf("bot: hash %d: %w", i, err)
		}
	}
	batch.Queue(`
		INSERT INTO bff_consumer.bot_score_log
		       (id, guest_session_id, fingerprint_hash, ip_hash, user_agent_hash, score, verdict, signals, action_taken,
		        evaluated_at)
		SELECT $1::text, s.named, $3, $4, $5, $6, $7, $8::jsonb, $9, $10
		FROM (SELECT CASE WHEN NOT EXISTS (
		               SELECT FROM bff_consumer.session_choice AS c
		               WHERE c.guest_session_id = $2 AND (NOT c.telemetry OR c.cleared_at IS NOT NULL))
		             THEN nullif($2::text, '') END AS named) AS s`,
		id.New(id.BotScore, e.At), e.Session, hashes[0], hashes[1], hashes[2],
		e.Score.Value, string(e.Score.Verdict), string(signals), string(e.Action), e.At)
	if e.OptedOut {
		return nil, nil
	}
	suspected := event.New(event.Meta{
		SessionID: e.Session, RequestID: e.RequestID, Traceparent: e.Traceparent, Instance: e.Instance, Now: e.At,
	}, event.BotSuspected{
		GuestSessionID: e.Session, Score: e.Score.Value, Verdict: string(e.Score.Verdict), Signals: e.Score.Signals,
		IPHash: e.Client.Address, UserAgentHash: e.AgentHash, FingerprintHash: e.Client.Fingerprint,
		EvaluatedAt: e.At, ActionTaken: string(e.Action),
	})
	return []event.Event{suspected}, outbox.Queue(batch, suspected)
}
