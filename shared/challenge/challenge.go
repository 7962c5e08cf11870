// Package challenge challenges suspected bots by offering challenges, verifying solutions, and
// keeping the proof of a session in Redis. The caller decides which clients are challenged.
//
// A request calls Enqueue on the first pipeline; if the score is above human, Verify; then Problem
// to reject the request, or EnqueueSave on the last pipeline.
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

// Header is the request header for a token of either kind.
const Header = "X-Recaptcha-Token"

// proofTTL is the life of a reCAPTCHA proof of a session.
const proofTTL = time.Hour

// Client identifies a client. A puzzle is valid for one client, and only the client that first sent
// a reCAPTCHA token can send the token again.
type Client = pow.Client

// Service offers and verifies challenges. Safe for concurrent use. A process must have only one
// Service, because the Service holds the provider's circuit breaker and the answers for recent
// tokens.
type Service struct {
	keys      redisclient.Keys
	issuer    pow.Issuer
	recaptcha *onceVerifier // nil without reCAPTCHA
	now       func() time.Time
}

// New returns a Service, dials nothing and never fails. ring signs puzzles under a purpose label of
// package pow and must not be empty: otherwise Problem panics. recaptcha may be nil: then the
// Service offers and accepts puzzles only. The Service keeps up to 4,096 answers for tokens in
// memory.
func New(keys redisclient.Keys, ring keyring.Ring, recaptcha Provider, now func() time.Time) *Service {
	r := &Service{keys: keys, issuer: pow.Issuer{Ring: ring, Now: now}, now: now}
	if recaptcha != nil {
		r.recaptcha = newOnceVerifier(recaptcha, now)
	}
	return r
}

// Pending is the queued read of a session's stored proof.
type Pending struct {
	sessionID string
	cmd       *redis.StringCmd
}

// Enqueue queues the read of a session's stored proof on the caller's pipeline: one GET in the slot
// of the session. It does no I/O and never fails. Pass the result to Verify after the pipeline has
// run. An absent proof (redis.Nil) is no failure of the pipeline.
func (s *Service) Enqueue(ctx context.Context, pipe redis.Pipeliner, sessionID string) *Pending {
	return &Pending{sessionID, pipe.Get(ctx, s.key(sessionID))}
}

// key returns the Redis key of a session's proof.
func (s *Service) key(sessionID string) string { return s.keys.SessionPart(sessionID, "challenge") }

// Verify returns the proof of a client whose score is above human: the proof that the session
// stored within the last hour, or the result of the token. Verify makes no round trip to Redis. A
// solved puzzle costs an HMAC and a hash. A reCAPTCHA token costs a call of the provider, of at
// most 400 ms with the fetch of an access token and until the deadline of ctx; the cancellation of
// ctx does not stop the call. There is no call if the session has a reCAPTCHA proof, for a text
// that cannot be a token, and while the circuit breaker is open.
//
// The instance calls the provider once per token. For two minutes concurrent and later requests of
// the client share the answer; a waiting request gives up when its ctx ends. Then the token is
// expired; another client's use is rejected. A failed call is forgotten, so the next request calls
// again. Beyond 4,096 tokens an instance forgets the oldest. A mutex of the process is held for map
// accesses only, never during a call.
//
// pending may be nil. A stored proof counts only for the session of Enqueue: a request with the
// cookie of another browser gets another session. Verify never fails. Without Redis the client has
// no stored proof. Without the provider a reCAPTCHA token has no effect, and Reason has the error
// for the log; so for an unsolved, expired or malformed solution. A valid reCAPTCHA answer is a
// Proof also if not Solved, with a Score that counts against the client, unless the session has a
// stored solution.
func (s *Service) Verify(ctx context.Context, pending *Pending, sessionID, token string, c Client) Proof {
	stored := pending.resolve(sessionID)
	switch {
	case token == "", stored.Kind == Recaptcha:
		return stored
	case strings.HasPrefix(token, pow.Prefix):
		if stored.Solved {
			return stored
		}
		return s.verifySolution(token, c)
	}
	// A stored solution helps a suspect only. A reCAPTCHA token may help a bot, or count against
	// the client; then the stored solution stays valid.
	if p := s.verifyRecaptcha(ctx, token, c); p.Solved || !stored.Solved {
		return p
	}
	return stored
}

// verifySolution verifies the solution of a puzzle.
func (s *Service) verifySolution(token string, c Client) Proof {
	expires, err := s.issuer.Verify(token, c)
	if err != nil {
		return Proof{Reason: "proof-of-work: " + err.Error()}
	}
	return Proof{Kind: ProofOfWork, Solved: true, expires: expires}
}

// verifyRecaptcha assesses a reCAPTCHA token.
func (s *Service) verifyRecaptcha(ctx context.Context, token string, c Client) Proof {
	if s.recaptcha == nil {
		return Proof{Reason: "recaptcha: not configured"}
	}
	a, err := s.recaptcha.verify(ctx, token, c)
	switch {
	case err != nil:
		return Proof{Reason: "recaptcha: " + err.Error()}
	case !a.Valid:
		return Proof{Reason: "recaptcha: " + a.Reason}
	}
	return Proof{Kind: Recaptcha, Solved: a.Score >= neutralScore, Score: a.Score, expires: s.now().Add(proofTTL)}
}

// EnqueueSave queues the storing of a proof for a session, one script, on the caller's pipeline,
// which lua.Exec runs. A reCAPTCHA proof lives for an hour, a solution until its puzzle expires.
// EnqueueSave queues no command for a proof that Redis already has, for a proof that is not Solved
// and for an expired proof. The script skips a session that was cleared meanwhile. EnqueueSave does
// no I/O and never fails; an error is an error of the pipeline. Without Redis the client solves
// another challenge later.
func (s *Service) EnqueueSave(ctx context.Context, pipe redis.Pipeliner, sessionID string, p Proof) {
	ttl := p.expires.Sub(s.now())
	if !p.Solved || ttl < time.Millisecond {
		return
	}
	lua.SetUnlessCleared(ctx, pipe, s.key(sessionID), s.keys.SessionPart(sessionID, "cleared"), p.String(), ttl)
}

// resolve returns the stored proof of a session. The result is the zero Proof without a queued
// read, for another session, without Redis and for an unreadable value.
func (p *Pending) resolve(sessionID string) Proof {
	if p == nil || p.sessionID != sessionID || p.cmd.Err() != nil {
		return Proof{}
	}
	kind, score, _ := strings.Cut(p.cmd.Val(), " ")
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

// Problem returns the problem SuspectedBot, status 429, with an offer of each available challenge,
// reCAPTCHA first. While the circuit breaker of reCAPTCHA is open, it offers the puzzle only.
// difficulty is the flag challenge.difficulty, in leading zero bits, limited to pow.MinDifficulty …
// pow.MaxDifficulty. Problem costs one HMAC, does no I/O and takes the mutex of the circuit breaker
// for a moment. It never returns nil; it panics if the ring of New is empty.
func (s *Service) Problem(c Client, difficulty int) *problem.Problem {
	var offers []Offer
	if s.recaptcha != nil {
		if o := s.recaptcha.provider.Offer(); o != nil {
			offers = append(offers, *o)
		}
	}
	puzzle := s.issuer.Issue(c, difficulty)
	offers = append(offers, Offer{
		Kind: ProofOfWork, Challenge: puzzle.Text, Difficulty: puzzle.Difficulty, Algorithm: "SHA-256",
		ExpiresAt: timestamp.Format(puzzle.Expires),
	})
	return problem.New(problem.SuspectedBot, "Solve one of the challenges, and send this request again with its token in the header "+Header+".", nil).
		WithExtension("challenge", struct {
			Header    string  `json:"header"`
			Providers []Offer `json:"providers"`
		}{Header, offers})
}

// Blocked returns the problem SuspectedBot, status 429, without offers, for a client whose verdict
// is bot. A puzzle does not help a bot; a reCAPTCHA token, which pages send unasked, still may.
// Memory only; it never fails and never returns nil.
func Blocked() *problem.Problem {
	return problem.New(problem.SuspectedBot, "This client is taken for a robot.", nil)
}

// Offer is one offered challenge, as the client receives it.
type Offer struct {
	Kind string `json:"kind"` // Recaptcha or ProofOfWork

	SiteKey string `json:"siteKey,omitzero"` // of reCAPTCHA
	Action  string `json:"action,omitzero"`  // of reCAPTCHA: action to request a token for

	Challenge  string `json:"challenge,omitzero"`  // of a puzzle: text to solve
	Difficulty int    `json:"difficulty,omitzero"` // of a puzzle: leading zero bits
	Algorithm  string `json:"algorithm,omitzero"`  // of a puzzle: "SHA-256"
	ExpiresAt  string `json:"expiresAt,omitzero"`  // of a puzzle and its solution
}

// String returns the value that Redis stores for a proof, also the detail of its signal: "recaptcha
// 0.9", with one decimal, "proof-of-work" or "". Pure; it never fails.
func (p Proof) String() string {
	if p.Kind == Recaptcha {
		return fmt.Sprintf("%s %.1f", p.Kind, p.Score)
	}
	return p.Kind
}
