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

// A client that goes on and on is recorded once a minute by each instance, and all clients together so many times: whoever
// changes fingerprint with every request is another client each time.
const (
	maxRecorded         = 16_384
	maxRecordsPerMinute = 600
)

// recorded is what is recorded once a minute.
type recorded struct {
	group   string
	verdict Verdict
	action  Action
}

type minute int64 // since 1970

// budget counts records of this minute.
type budget struct {
	sync.Mutex
	minute minute
	used   int
}

// ShouldRecord says whether a verdict on a client is to be recorded now, and takes it that it is: the next one within the minute is
// not. Humans are never recorded. It is decided in this process, since a request that is refused has no second round trip
// to Redis, and the record matters most when Redis is away; so a client is recorded once a minute by each instance.
func (r *Detector) ShouldRecord(c Client, v Verdict, act Action) bool {
	if v == Human {
		return false
	}
	now := minute(r.now().Unix() / 60)
	what := recorded{c.groupKey(), v, act}
	r.budget.Lock()
	defer r.budget.Unlock()
	if last, ok := r.recorded.Get(what); ok && last == now {
		return false
	}
	if r.budget.minute != now {
		r.budget.minute, r.budget.used = now, 0
	}
	if r.budget.used >= maxRecordsPerMinute {
		return false
	}
	r.budget.used++
	r.recorded.Add(what, now)
	return true
}

// Entry is one verdict to be recorded.
type Entry struct {
	Client    Client // by its hashes; Client.Session is not recorded
	AgentHash string // sha256:<hex>; session.Visit.AgentHash
	Session   string // the guest's, if it was there before this request; empty: none
	OptedOut  bool   // the guest is known to refuse telemetry
	Score     Score
	Action    Action
	At        time.Time

	RequestID, Traceparent, Instance string // for the envelope
}

// Record puts the row of bot_score_log and the event bot_suspected.v1 on a batch, both in one transaction and round trip,
// for a verdict above human. Of a guest who refuses telemetry there is no event and the row names no session; Postgres
// knows of refusals that are not known here. It returns the event, which may be told without the row where Postgres is
// away; nil for none.
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
	told := event.New(event.Meta{
		SessionID: e.Session, RequestID: e.RequestID, Traceparent: e.Traceparent, Instance: e.Instance, Now: e.At,
	}, event.BotSuspected{
		GuestSessionID: e.Session, Score: e.Score.Value, Verdict: string(e.Score.Verdict), Signals: e.Score.Signals,
		IPHash: e.Client.Address, UserAgentHash: e.AgentHash, FingerprintHash: e.Client.Fingerprint,
		EvaluatedAt: e.At, ActionTaken: string(e.Action),
	})
	return []event.Event{told}, outbox.Queue(batch, told)
}
