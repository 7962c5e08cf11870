// Package challenge owns how a client that looks like a robot shows that it is none: what it is asked, whether what it
// sends is right, and how long that counts for its session. It never decides who is asked.
//
// A request is one pass: Peek on the pipeline of its admission, Prove when its score is above human, then Problem, or
// Remember on the pipeline it leaves with.
package challenge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge/pow"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// Header is the request header that carries the token of either kind.
const Header = "X-Recaptcha-Token"

// proofTTL is how long a session need not be asked again.
const proofTTL = time.Hour

// Client is whom a puzzle is for, and who alone can send a token twice.
type Client = pow.Client

// Service asks and checks. Safe for concurrent use; one per process, because it keeps the provider's breaker and what was
// said of recent tokens.
type Service struct {
	keys      redisclient.Keys
	issuer    pow.Issuer
	recaptcha *onceVerifier // nil: nobody to ask
	now       func() time.Time
}

// New makes a Room. ring signs puzzles, under a label of their own; recaptcha may be nil: then puzzles are all there is.
func New(keys redisclient.Keys, ring keyring.Ring, recaptcha Provider, now func() time.Time) *Service {
	r := &Service{keys: keys, issuer: pow.Issuer{Ring: ring, Now: now}, now: now}
	if recaptcha != nil {
		r.recaptcha = newOnceVerifier(recaptcha, now)
	}
	return r
}

// Pending is what a session showed before, as Redis has it.
type Pending struct {
	sessionID string
	cmd       *redis.StringCmd
}

// Enqueue puts the read of what the session showed before on the caller's pipeline: one GET in the slot of the session.
func (r *Service) Enqueue(ctx context.Context, pipe redis.Pipeliner, sessionID string) *Pending {
	return &Pending{sessionID, pipe.Get(ctx, r.key(sessionID))}
}

func (r *Service) key(sessionID string) string { return r.keys.SessionPart(sessionID, "challenge") }

// Verify is what speaks for a client whose score is above human: what its session showed within the hour, or the token it
// sends. A solution costs one HMAC and one hash; only a reCAPTCHA token is asked about, once, for 400 ms at most. read
// may be nil; it counts for the session it was read for alone, because a cookie from another browser leads to another
// session. Without Redis nothing was shown before; without the provider its token shows nothing: neither is an error.
func (r *Service) Verify(ctx context.Context, read *Pending, sessionID, token string, c Client) Proof {
	before := read.resolve(sessionID)
	switch {
	case token == "", before.Kind == Recaptcha:
		return before
	case strings.HasPrefix(token, pow.Prefix):
		if before.Solved {
			return before
		}
		return r.verifySolution(token, c)
	}
	// A solution speaks for a suspect; for more than that it takes reCAPTCHA, which also may think little of the client.
	if p := r.verifyRecaptcha(ctx, token, c); p.Solved || !before.Solved {
		return p
	}
	return before
}

func (r *Service) verifySolution(token string, c Client) Proof {
	expires, err := r.issuer.Verify(token, c)
	if err != nil {
		return Proof{Reason: "proof-of-work: " + err.Error()}
	}
	return Proof{Kind: ProofOfWork, Solved: true, expires: expires}
}

func (r *Service) verifyRecaptcha(ctx context.Context, token string, c Client) Proof {
	if r.recaptcha == nil {
		return Proof{Reason: "recaptcha: not set up"}
	}
	a, err := r.recaptcha.verify(ctx, token, c)
	switch {
	case err != nil:
		return Proof{Reason: "recaptcha: " + err.Error()}
	case !a.Valid:
		return Proof{Reason: "recaptcha: " + a.Reason}
	}
	return Proof{Kind: Recaptcha, Solved: a.Score >= neutralScore, Score: a.Score, expires: r.now().Add(proofTTL)}
}

// EnqueueSave puts on the caller's pipeline, which lua.Exec runs, what the session need not show again for an hour, or for
// as long as its solution lasts. It does nothing for what Redis has already, and for what did not help the client; a
// session that was cleared meanwhile keeps nothing.
func (r *Service) EnqueueSave(ctx context.Context, pipe redis.Pipeliner, sessionID string, p Proof) {
	left := p.expires.Sub(r.now())
	if !p.Solved || left < time.Millisecond {
		return
	}
	lua.SetUnlessCleared(ctx, pipe, r.key(sessionID), r.keys.SessionPart(sessionID, "cleared"), p.String(), left)
}

// resolve is what was shown before by the session of that id. What cannot be read is nothing.
func (r *Pending) resolve(sessionID string) Proof {
	if r == nil || r.sessionID != sessionID || r.cmd.Err() != nil {
		return Proof{}
	}
	kind, score, _ := strings.Cut(r.cmd.Val(), " ")
	switch kind {
	case ProofOfWork:
		return Proof{Kind: ProofOfWork, Solved: true}
	case Recaptcha:
		if s, err := strconv.ParseFloat(score, 64); err == nil && s >= neutralScore && s <= 1 {
			return Proof{Kind: Recaptcha, Solved: true, Score: s}
		}
	}
	return Proof{}
}

// Problem asks the client to show that it is no robot: 429 with what each way needs, the better one first. difficulty is
// the flag challenge.difficulty, in leading zero bits.
func (r *Service) Problem(c Client, difficulty int) *problem.Problem {
	var ways []Offer
	if r.recaptcha != nil {
		if o := r.recaptcha.provider.Offer(); o != nil {
			ways = append(ways, *o)
		}
	}
	puzzle := r.issuer.Issue(c, difficulty)
	ways = append(ways, Offer{
		Kind: ProofOfWork, Challenge: puzzle.Text, Difficulty: puzzle.Difficulty, Algorithm: "SHA-256",
		ExpiresAt: timestamp.Format(puzzle.Expires),
	})
	return problem.New(problem.SuspectedBot, "Solve one of the challenges, and send this request again with its token in the header "+Header+".", nil).
		WithExtension("challenge", struct {
			Header    string  `json:"header"`
			Providers []Offer `json:"providers"`
		}{Header, ways})
}

// Blocked refuses a client that is too much of a robot for a puzzle. A reCAPTCHA token, which is for pages to send
// unasked, may still speak for it.
func Blocked() *problem.Problem {
	return problem.New(problem.SuspectedBot, "This client is taken for a robot.", nil)
}

// Offer is one way to pass, on the wire.
type Offer struct {
	Kind string `json:"kind"` // Recaptcha or Work

	SiteKey string `json:"siteKey,omitzero"` // of reCAPTCHA
	Action  string `json:"action,omitzero"`  // to ask a token for

	Challenge  string `json:"challenge,omitzero"`  // the text to solve
	Difficulty int    `json:"difficulty,omitzero"` // leading zero bits
	Algorithm  string `json:"algorithm,omitzero"`  // "SHA-256"
	ExpiresAt  string `json:"expiresAt,omitzero"`  // of the challenge and of its solution
}

// String is a proof as Redis keeps it and as the detail of a signal: "recaptcha 0.9", "proof-of-work", "".
func (p Proof) String() string {
	if p.Kind == Recaptcha {
		return fmt.Sprintf("%s %.1f", p.Kind, p.Score)
	}
	return p.Kind
}
