package challenge

import "time"

// The kinds of challenges.
const (
	Recaptcha   = "recaptcha"     // reCAPTCHA Enterprise, which rates how the page is used
	ProofOfWork = "proof-of-work" // a puzzle of package pow: it shows only that the client runs a program
)

// Proof is the result of a challenge and counts for or against a client. The zero Proof is neutral.
type Proof struct {
	Kind   string  // Recaptcha or ProofOfWork; "" without a result
	Solved bool    // a suspect with this proof is not challenged
	Score  float64 // of reCAPTCHA: 0 bot … 1 human
	Reason string  // why the token proves nothing, for the log; never contains the token

	expires time.Time // when the stored proof expires; zero if Redis has the proof already
}

const (
	neutralScore = 0.5 // reCAPTCHA score with the weight 0
	maxWeight    = 0.5 // largest weight of a proof, for a client and against it
	// reCAPTCHA score from which a proof has the largest weight; 0.1 for the opposite weight
	certainScore = 0.9
)

// Weight returns the weight of the signal "recaptcha", −0.5 (human) … +0.5 (bot). isBot tells that
// the verdict without the proof is bot: a solved puzzle does not help a bot, because a program
// solves a puzzle in a hundredth of a second. A reCAPTCHA score counts linearly, solved or not,
// from −0.5 at 0.9 to +0.5 at 0.1. The zero Proof has the weight 0. Pure; it never fails.
func (p Proof) Weight(isBot bool) float64 {
	switch {
	case p.Kind == Recaptcha:
		return max(-maxWeight, min(maxWeight, (neutralScore-p.Score)/(certainScore-neutralScore)*maxWeight))
	case p.Solved && !isBot:
		return -maxWeight
	default:
		return 0
	}
}
