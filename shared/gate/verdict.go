package gate

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// decideBot scores the client and applies the bot mode to the score.
func (c *Check) decideBot(ctx context.Context, s Session) (Outcome, *problem.Problem) {
	if c.botRead == nil {
		return Allow, nil
	}
	g, call := c.gate, web.FromContext(ctx)
	evidence := g.bots.Resolve(c.botRead, bot.Request{
		Header: c.header, Address: call.ClientIP, Campaign: c.flags.CampaignMode,
		CookieMismatch: s.New && c.client.SessionID != "",
	})
	score := bot.Evaluate(evidence)
	if score.Verdict == bot.Human {
		return Allow, nil
	}
	c.proof = g.challenges.Verify(ctx, c.challengeRead, c.challengeSession(s), c.header.Get(challenge.Header), c.client.forChallenge())
	if c.proof.Reason != "" {
		call.AddLogField("challenge", c.proof.Reason)
	}
	if c.proof.Kind != "" {
		evidence.Challenge = &bot.ChallengeResult{Weight: c.proof.Weight(score.Verdict == bot.Bot), Detail: proofDetail(c.proof)}
		score = bot.Evaluate(evidence)
	}
	action := bot.ActionFor(c.flags.BotMode, score.Verdict, c.proof.Solved)
	if score.Verdict != bot.Human {
		call.AddLogField("bot", string(score.Verdict))
		c.recordVerdict(ctx, s, score, action)
	}
	switch action {
	case bot.Challenge:
		return Challenge, g.challenges.Problem(c.client.forChallenge(), c.flags.Challenge.Difficulty)
	case bot.HardBlock:
		return Reject, challenge.Blocked()
	default:
		return Allow, nil
	}
}

// challengeSession returns the session with the proofs for this request: the request's own, or the
// cookie's if the caller did not read a session.
func (c *Check) challengeSession(s Session) string {
	if s.ID == "" {
		return c.client.SessionID
	}
	return s.ID
}

// proofDetail describes a proof in the detail of a bot signal.
func proofDetail(p challenge.Proof) string {
	if p.Kind == challenge.Recaptcha {
		return fmt.Sprintf("score-%.0f", math.Round(p.Score*100))
	}
	return p.Kind
}

// recordVerdict writes the row of a verdict and its event in a round trip to Postgres of at most
// 300 ms, before the response. It skips a verdict on record within the last minute; see
// bot.Detector.ShouldRecord. Without Postgres, the row is lost and logged, and the event waits in
// Redis, unless the guest's consent is unknown.
func (c *Check) recordVerdict(ctx context.Context, s Session, score bot.Score, action bot.Action) {
	g, call := c.gate, web.FromContext(ctx)
	if !g.bots.ShouldRecord(c.client.forBots(), score.Verdict, action) {
		return
	}
	defer call.Phase("record")()
	e := bot.Entry{
		Client: c.client.forBots(), AgentHash: c.client.UserAgent, Score: score, Action: action, OptedOut: !s.AllowsEvents, At: g.now(),
		RequestID: call.ID, Traceparent: call.Traceparent, Instance: g.instance,
	}
	if !s.New { // the row names no session that this request started
		e.Session = s.ID
	}
	batch := &pgx.Batch{}
	events, err := bot.Record(batch, e)
	if err == nil {
		err = g.outbox.RecordWith(ctx, s.ConsentKnown, batch, events...)
	}
	if err != nil {
		call.AddLogField("verdictLost", err.Error())
	}
}
