package challenge

import "time"

// The two ways to pass.
const (
	Recaptcha   = "recaptcha"     // a service that watches how the page is used
	ProofOfWork = "proof-of-work" // a puzzle of our own: it shows that a program runs there that can be made to, no more
)

// Proof is what speaks for a client, or against it. The zero Proof is silence.
type Proof struct {
	Kind   string  // Recaptcha, Work; "" for nothing
	Solved bool    // a suspect with it need not be asked
	Score  float64 // reCAPTCHA's: 0 robot … 1 human
	Reason string  // why the token that was sent shows nothing; for the log: it holds nothing of the token

	expires time.Time // how long to remember it; zero: it is remembered already
}

const (
	neutralScore = 0.5 // reCAPTCHA's score that says nothing either way
	maxWeight    = 0.5 // what a proof takes from a score at best, and adds at worst
	certainScore = 0.9 // reCAPTCHA's score for which it is all of that; 0.1 on the other side
)

// Weight is what the proof adds to a score, −0.5 … +0.5, as the signal "recaptcha". bot says that the score without it
// is a robot's: a puzzle never speaks for one, or it would cost a robot a hundredth of a second to be taken for a guest.
func (p Proof) Weight(bot bool) float64 {
	switch {
	case p.Kind == Recaptcha:
		return max(-maxWeight, min(maxWeight, (neutralScore-p.Score)/(certainScore-neutralScore)*maxWeight))
	case p.Solved && !bot:
		return -maxWeight
	default:
		return 0
	}
}
