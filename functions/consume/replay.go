package consume

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// replayReporter reports a second use of a handoff: a row of bot_score_log, the event
// bot_suspected.v1, and a penalty for the fingerprint of the minting guest. Safe for concurrent
// use.
type replayReporter struct {
	rdb      redis.UniversalClient
	keys     redisclient.Keys
	peppers  keyring.Ring
	instance string // name of this process in events
}

const (
	replayScore    = 0.6 // a suspect (from 0.45), not a bot (from 0.85): the guest may have shared the link
	penaltyTTL     = 24 * time.Hour
	penaltyTimeout = 100 * time.Millisecond
)

// record writes the verdict and its event with two statements of tx. counted reports whether this
// use is recorded for the first time: repetitions of a call with the same key count once.
// outbox.Add writes no event of an opted-out guest. The user agent belongs to the calling service;
// no user agent of the guest is stored. Errors come from Postgres.
func (p *replayReporter) record(ctx context.Context, tx pgx.Tx, r *http.Request, use replay, status ledger.Status) (counted bool, err error) {
	call := web.FromContext(ctx)
	e := event.BotSuspected{
		GuestSessionID: status.GuestSessionID, Score: replayScore, Verdict: "suspect",
		Signals: []event.BotSignal{{Kind: "header-anomaly", Weight: replayScore, Detail: "handoff-replayed"}},
		IPHash:  status.IPHash, FingerprintHash: status.Fingerprint,
		UserAgentHash: digest.Format(p.peppers.Active().Sum("user-agent.v1", []byte(r.UserAgent()))),
		EvaluatedAt:   use.At, ActionTaken: "none",
	}
	signals, err := json.Marshal(e.Signals)
	if err != nil {
		return false, fmt.Errorf("consume: signals: %w", err)
	}
	inserted, err := tx.Exec(ctx, `
		INSERT INTO bff_consumer.bot_score_log
		       (id, guest_session_id, fingerprint_hash, ip_hash, user_agent_hash, score, verdict, signals, action_taken, evaluated_at)
		VALUES ($1::text, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (id) DO NOTHING`,
		use.deriveID(id.BotScore, status), e.GuestSessionID, parseDigest(e.FingerprintHash), parseDigest(e.IPHash), parseDigest(e.UserAgentHash),
		e.Score, e.Verdict, signals, e.ActionTaken, use.At)
	if err != nil {
		return false, fmt.Errorf("consume: record the verdict: %w", err)
	}
	if inserted.RowsAffected() == 0 {
		return false, nil
	}
	return true, outbox.Add(ctx, tx, event.New(event.Meta{
		ID: use.deriveID(id.Event, status), SessionID: e.GuestSessionID, RequestID: call.ID, Traceparent: call.Traceparent,
		Instance: p.instance, Now: use.At,
	}, e))
}

// replay is an attempt to consume a handoff that was consumed before.
type replay struct {
	ledger.Attempt
	handoffID string
}

// deriveID returns the same id for each repetition of a call with the same key. The time in the id
// is the time of the first use, known to every refused call and later than the mint's event.
// Without a key every call is another use with a new id.
func (u replay) deriveID(p id.Prefix, status ledger.Status) string {
	if u.KeyHash == nil {
		return id.New(p, u.At)
	}
	return id.Derive(p, status.ConsumedAt, u.handoffID, u.Consumer, string(u.KeyHash))
}

// parseDigest returns the bytes of a hash "sha256:<hex>", the form that Postgres stores.
func parseDigest(hash string) []byte {
	sum, err := digest.Parse(hash)
	if err != nil {
		panic(err) // unreachable: encoded in this process
	}
	return sum
}

// addPenalty raises the penalty of a fingerprint for a day, in a Redis round trip of at most 100
// ms. A failure is logged only: the verdict is in bot_score_log.
func (p *replayReporter) addPenalty(ctx context.Context, fingerprint string) {
	ctx, cancel := context.WithTimeout(ctx, penaltyTimeout)
	defer cancel()
	key := p.keys.Penalty(fingerprint)
	_, err := p.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.Incr(ctx, key)
		tx.PExpire(ctx, key, penaltyTTL)
		return nil
	})
	if err != nil {
		web.FromContext(ctx).AddLogField("penaltyLost", err.Error())
	}
}
