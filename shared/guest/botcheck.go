package guest

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// evaluateBot says whether the client is taken for a person, as far as the mode asks. Only one that is not is asked for more
// than Redis knows already: a token that it sent is looked at, and the verdict is recorded.
func (g *check) evaluateBot(ctx context.Context, s *session.Session) error {
	if g.botRead == nil {
		return nil
	}
	guard, call := g.controller.policies, web.FromContext(ctx)
	evidence := guard.Bots.Resolve(g.botRead, bot.Request{
		Header: g.header, Address: call.ClientIP, Campaign: g.flags.CampaignMode,
		CookieMismatch: s != nil && s.New && g.sessionID != "",
	})
	score := bot.Evaluate(evidence)
	if score.Verdict == bot.Human {
		return nil
	}
	asked := challenge.Client{Fingerprint: g.client.Fingerprint, Address: g.addressHash}
	g.proof = guard.Challenges.Verify(ctx, g.challengeRead, g.challengeSession(s), g.header.Get(challenge.Header), asked)
	if g.proof.Reason != "" {
		call.AddLogField("challenge", g.proof.Reason)
	}
	if g.proof.Kind != "" {
		evidence.Challenge = &bot.ChallengeResult{Weight: g.proof.Weight(score.Verdict == bot.Bot), Detail: proofDetail(g.proof)}
		score = bot.Evaluate(evidence)
	}
	act := bot.ActionFor(g.flags.BotMode, score.Verdict, g.proof.Solved)
	if score.Verdict != bot.Human {
		call.AddLogField("bot", string(score.Verdict))
		g.recordVerdict(ctx, s, score, act)
	}
	switch act {
	case bot.Challenge:
		return guard.Challenges.Problem(asked, g.flags.Challenge.Difficulty)
	case bot.HardBlock:
		return challenge.Blocked()
	default:
		return nil
	}
}

// challengeSession is the session that what was shown before was shown for.
func (g *check) challengeSession(s *session.Session) string {
	if s == nil {
		return g.sessionID
	}
	return s.ID
}

// proofDetail is a proof as a signal names it.
func proofDetail(p challenge.Proof) string {
	if p.Kind == challenge.Recaptcha {
		return fmt.Sprintf("score-%.0f", math.Round(p.Score*100))
	}
	return p.Kind
}

// recordVerdict puts a verdict on record before the answer, where it is due: row and event in one write, within 300 ms. While
// Postgres is away the row is lost, which is noted, and the event waits in Redis as others do.
func (g *check) recordVerdict(ctx context.Context, s *session.Session, score bot.Score, act bot.Action) {
	guard, call := g.controller.policies, web.FromContext(ctx)
	if !guard.Bots.ShouldRecord(g.botClient(), score.Verdict, act) {
		return
	}
	defer call.Phase("record")()
	e := bot.Entry{
		Client: g.botClient(), AgentHash: g.client.UserAgentHash(), Score: score, Action: act, At: guard.Now(),
		RequestID: call.ID, Traceparent: call.Traceparent, Instance: g.controller.instance,
	}
	mayWait := true
	switch {
	case s == nil: // where a cookie is presented and its session was not read, nobody has asked whether it may be told of
		e.OptedOut = session.HasOptOut(g.header) || g.sessionID != ""
	case s.New:
		e.OptedOut = !s.AllowsEvents()
	default:
		e.Session, e.OptedOut, mayWait = s.ID, !s.AllowsEvents(), s.ConsentKnown()
	}
	batch := &pgx.Batch{}
	events, err := bot.Record(batch, e)
	if err == nil {
		err = g.controller.outbox.RecordWith(ctx, mayWait, batch, events...)
	}
	if err != nil {
		call.AddLogField("verdictLost", err.Error())
	}
}

// enqueueUpdates puts on the pipeline that a request leaves with what is to be known of its client: that a session began with it,
// and what it showed.
func (g *check) enqueueUpdates(ctx context.Context, pipe redis.Pipeliner, s *session.Session) {
	if g.botRead == nil {
		return
	}
	if s.New {
		g.controller.policies.Bots.EnqueueSessionStart(ctx, pipe, g.botClient(), s.ID)
	}
	g.controller.policies.Challenges.EnqueueSave(ctx, pipe, s.ID, g.proof)
}
