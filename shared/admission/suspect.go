package admission

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

// judge says whether the client is taken for a person, as far as the mode asks. Only one that is not is asked for more
// than Redis knows already: a token that it sent is looked at, and the verdict is recorded.
func (g *gate) judge(ctx context.Context, s *session.Session) error {
	if g.seen == nil {
		return nil
	}
	guard, call := g.door.guard, web.From(ctx)
	evidence := guard.Bots.Settle(g.seen, bot.Request{
		Header: g.header, Address: call.ClientIP, Campaign: g.flags.CampaignMode,
		ForeignCookie: s != nil && s.New && g.cookie != "",
	})
	score := bot.Evaluate(evidence)
	if score.Verdict == bot.Human {
		return nil
	}
	asked := challenge.Client{Fingerprint: g.client.Fingerprint, Address: g.address}
	g.proof = guard.Challenges.Prove(ctx, g.shown, g.presented(s), g.header.Get(challenge.Header), asked)
	if g.proof.Reason != "" {
		call.Note("challenge", g.proof.Reason)
	}
	if g.proof.Kind != "" {
		evidence.Challenge = &bot.Answer{Weight: g.proof.Weight(score.Verdict == bot.Bot), Detail: detail(g.proof)}
		score = bot.Evaluate(evidence)
	}
	act := bot.Action(g.flags.BotMode, score.Verdict, g.proof.Solved)
	if score.Verdict != bot.Human {
		call.Note("bot", string(score.Verdict))
		g.record(ctx, s, score, act)
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

// presented is the session that what was shown before was shown for.
func (g *gate) presented(s *session.Session) string {
	if s == nil {
		return g.cookie
	}
	return s.ID
}

// detail is a proof as a signal names it.
func detail(p challenge.Proof) string {
	if p.Kind == challenge.Recaptcha {
		return fmt.Sprintf("score-%.0f", math.Round(p.Score*100))
	}
	return p.Kind
}

// record puts a verdict on record before the answer, where it is due: row and event in one write, within 300 ms. While
// Postgres is away the row is lost, which is noted, and the event waits in Redis as others do.
func (g *gate) record(ctx context.Context, s *session.Session, score bot.Score, act bot.Act) {
	guard, call := g.door.guard, web.From(ctx)
	if !guard.Bots.Due(g.who(), score.Verdict, act) {
		return
	}
	defer call.Phase("record")()
	e := bot.Entry{
		Client: g.who(), AgentHash: g.client.AgentHash(), Score: score, Act: act, At: guard.Now(),
		RequestID: call.ID, Traceparent: call.Traceparent, Instance: g.door.instance,
	}
	mayWait := true
	switch {
	case s == nil: // where a cookie is presented and its session was not read, nobody has asked whether it may be told of
		e.Silent = session.Refuses(g.header) || g.cookie != ""
	case s.New:
		e.Silent = !s.Emits()
	default:
		e.Session, e.Silent, mayWait = s.ID, !s.Emits(), s.Known()
	}
	batch := &pgx.Batch{}
	events, err := bot.Record(batch, e)
	if err == nil {
		err = g.door.outbox.Beside(ctx, mayWait, batch, events...)
	}
	if err != nil {
		call.Note("verdictLost", err.Error())
	}
}

// leave puts on the pipeline that a request leaves with what is to be known of its client: that a session began with it,
// and what it showed.
func (g *gate) leave(ctx context.Context, pipe redis.Pipeliner, s *session.Session) {
	if g.seen == nil {
		return
	}
	if s.New {
		g.door.guard.Bots.Began(ctx, pipe, g.who(), s.ID)
	}
	g.door.guard.Challenges.Remember(ctx, pipe, s.ID, g.proof)
}
