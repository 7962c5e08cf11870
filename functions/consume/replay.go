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

// replayReporter records who used a handoff twice, tells of it, and remembers it against the fingerprint that the handoff was
// minted for.
type replayReporter struct {
	rdb      redis.UniversalClient
	keys     redisclient.Keys
	peppers  keyring.Ring
	instance string
}

const (
	replayScore    = 0.6 // above the 0.45 of a suspect, below the 0.85 of a bot: a link may have been shared
	penaltyTTL     = 24 * time.Hour
	penaltyTimeout = 100 * time.Millisecond
)

// record writes the verdict on a second use and the event that tells of it; it says whether this use is counted for the
// first time. A call that was repeated with its key is one use, however often it is refused. Of a guest who refused
// telemetry nothing is told; outbox.Add sees to that. The user agent is the one that we were called with: of the
// guest's own nothing is kept.
func (s *replayReporter) record(ctx context.Context, tx pgx.Tx, r *http.Request, use replay, who ledger.Status) (counted bool, err error) {
	call := web.FromContext(ctx)
	e := event.BotSuspected{
		GuestSessionID: who.GuestSessionID, Score: replayScore, Verdict: "suspect",
		Signals: []event.BotSignal{{Kind: "header-anomaly", Weight: replayScore, Detail: "handoff-replayed"}},
		IPHash:  who.IPHash, FingerprintHash: who.Fingerprint,
		UserAgentHash: digest.Format(s.peppers.Active().Sum("user-agent.v1", []byte(r.UserAgent()))),
		EvaluatedAt:   use.At, ActionTaken: "none",
	}
	signals, err := json.Marshal(e.Signals)
	if err != nil {
		return false, fmt.Errorf("consume: signals: %w", err)
	}
	wrote, err := tx.Exec(ctx, `
		INSERT INTO bff_consumer.bot_score_log
		       (id, guest_session_id, fingerprint_hash, ip_hash, user_agent_hash, score, verdict, signals, action_taken, evaluated_at)
		VALUES ($1::text, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (id) DO NOTHING`,
		use.deriveID(id.BotScore, who), e.GuestSessionID, parseDigest(e.FingerprintHash), parseDigest(e.IPHash), parseDigest(e.UserAgentHash),
		e.Score, e.Verdict, signals, e.ActionTaken, use.At)
	if err != nil {
		return false, fmt.Errorf("consume: record the verdict: %w", err)
	}
	if wrote.RowsAffected() == 0 {
		return false, nil
	}
	return true, outbox.Add(ctx, tx, event.New(event.Meta{
		ID: use.deriveID(id.Event, who), SessionID: e.GuestSessionID, RequestID: call.ID, Traceparent: call.Traceparent,
		Instance: s.instance, Now: use.At,
	}, e))
}

// replay is a use of a handoff that was used.
type replay struct {
	ledger.Attempt
	handoffID string
}

// deriveID is the same for a call that is repeated with its key. Its time is that of the first use, which all who are refused
// find, and which is later than what was told of the mint. Without a key every call is another use.
func (u replay) deriveID(p id.Prefix, who ledger.Status) string {
	if u.KeyHash == nil {
		return id.New(p, u.At)
	}
	return id.Derive(p, who.ConsumedAt, u.handoffID, u.Consumer, string(u.KeyHash))
}

// parseDigest is the digest of a hash as Postgres keeps it.
func parseDigest(hash string) []byte {
	sum, err := digest.Parse(hash)
	if err != nil {
		panic(err) // unreachable: encoded in this process
	}
	return sum
}

// addPenalty raises the fingerprint's penalty for a day. Losing it loses no record: the verdict is in bot_score_log.
func (s *replayReporter) addPenalty(ctx context.Context, fingerprint string) {
	ctx, cancel := context.WithTimeout(ctx, penaltyTimeout)
	defer cancel()
	key := s.keys.Penalty(fingerprint)
	_, err := s.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.Incr(ctx, key)
		tx.PExpire(ctx, key, penaltyTTL)
		return nil
	})
	if err != nil {
		web.FromContext(ctx).AddLogField("penaltyLost", err.Error())
	}
}
