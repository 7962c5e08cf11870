package consume

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/serviceauth"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Consume answers POST /internal/handoff/{id}/consume. Safe for concurrent use.
type Consume struct {
	callers *serviceauth.Verifier
	keys    handoff.Keys
	db      *pgxpool.Pool
	replays replayReporter
	now     func() time.Time
}

type request struct {
	Token      string `json:"token"`
	ConsumedBy string `json:"consumedBy"`
}

// consumeResponse is the answer.
type consumeResponse struct {
	HandoffID      string         `json:"handoffId"`
	GuestSessionID string         `json:"guestSessionId"`
	TenantID       string         `json:"tenantId"`
	PropertyID     string         `json:"propertyId"`
	Dates          stay.Dates     `json:"dates"`
	Occupancy      stay.Occupancy `json:"occupancy"`
	Currency       string         `json:"currency"`
	Locale         string         `json:"locale"`
	SourceCampaign *campaign      `json:"sourceCampaign,omitzero"`
	MintedAt       string         `json:"mintedAt"`
	ExpiresAt      string         `json:"expiresAt"`
	ConsumedAt     string         `json:"consumedAt"`
}

type campaign struct {
	Source     string `json:"source,omitzero"`
	Medium     string `json:"medium,omitzero"`
	Campaign   string `json:"campaign,omitzero"`
	CapturedAt string `json:"capturedAt"`
}

const consumeTimeout = time.Second // for the statement that decides

// Serve uses a handoff, once, and tells the tenant's BFF what it is.
func (c *Consume) Serve(w http.ResponseWriter, r *http.Request) error {
	account, err := c.callers.Verify(r)
	if err != nil {
		return problem.New(problem.CallerNotAllowed, "Only services on the list may call this.", err)
	}
	if err := web.RejectQuery(r); err != nil {
		return err
	}
	var in request
	if err := web.Decode(r, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	key, err := idempotency.Key(r.Header)
	if err != nil {
		return err
	}
	now := c.now().UTC().Truncate(time.Millisecond)
	token, err := c.verify(in.Token, r.PathValue("id"), now)
	if err != nil {
		return problem.New(problem.HandoffSignatureInvalid, "The token is not genuine, or not of this handoff.", err)
	}
	use := ledger.Attempt{Consumer: in.ConsumedBy, At: now}
	if key != "" {
		sum := sha256.Sum256([]byte(account + "|" + key)) // another account's key is another key
		use.KeyHash = sum[:]
	}
	// Who began to use it and hangs up must not leave it half used; the clock counts all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), consumeTimeout)
	defer cancel()
	done := web.FromContext(ctx).Phase("consume")
	used, err := ledger.Consume(ctx, c.db, token.ID, use)
	done()
	switch {
	case errors.Is(err, ledger.ErrNotConsumed):
		return c.handleRejected(ctx, r, token, use)
	case err != nil:
		return postgres.Problem(err)
	}
	return web.WriteJSON(w, http.StatusOK, newConsumeResponse(&used))
}

func (r *request) check() error {
	var wrong problem.FieldErrors
	if r.Token == "" {
		wrong.Add("token", "required", "Send the token of the handoff.")
	}
	switch by := r.ConsumedBy; {
	case by == "":
		wrong.Add("consumedBy", "required", "Say who uses it.")
	case len(by) > 128 || strings.ContainsFunc(by, func(c rune) bool { return c <= ' ' || c > '~' }):
		wrong.Add("consumedBy", "malformed", "Must be 1 to 128 printable ASCII characters without spaces.")
	}
	if wrong != nil {
		return problem.Invalid(wrong...)
	}
	return nil
}

// verify accepts a genuine token of that handoff. One whose time is over is let through: if it was used in time, its
// user may ask again; the statement that decides looks at the time itself.
func (c *Consume) verify(token, id string, now time.Time) (handoff.Handoff, error) {
	h, err := c.keys.Verify(token, now)
	if errors.Is(err, handoff.ErrExpired) {
		h, err = c.keys.VerifySignature(token)
	}
	if err == nil && h.ID != id {
		err = errors.New("consume: the token is of another handoff")
	}
	return h, err
}

// handleRejected says why a handoff was not used. A second use is recorded and told before it is answered: what is read here
// and what is written of it are one transaction, and what was used once stays used.
func (c *Consume) handleRejected(ctx context.Context, r *http.Request, token handoff.Handoff, use ledger.Attempt) error {
	defer web.FromContext(ctx).Phase("reject")()
	var (
		standing ledger.Status
		counted  bool
	)
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) (err error) {
		standing, err = ledger.FindStatus(ctx, tx, token.ID)
		if err == nil && standing.Consumed {
			counted, err = c.replays.record(ctx, tx, r, replay{use, token.ID}, standing)
		}
		return err
	})
	over := !use.At.Before(token.ExpiresAt)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && !over:
		return problem.New(problem.HandoffNotFound, "This handoff is not on record.", err)
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return postgres.Problem(err)
	case standing.Consumed:
		if counted {
			c.replays.addPenalty(ctx, standing.Fingerprint)
		}
		return problem.New(problem.HandoffReplayed, "A handoff is used once.", nil)
	case over: // also one whose record is gone by now
		return problem.New(problem.HandoffExpired, "The guest must ask for a new one.", nil)
	case standing.Suspended:
		return problem.New(problem.TenantSuspended, "This hotel takes no bookings at present.", nil)
	}
	// Between the two statements the tenant was reinstated.
	return problem.New(problem.UpstreamUnavailable, "Please try again.", nil).WithRetryAfter(time.Second)
}

func newConsumeResponse(u *ledger.Consumed) consumeResponse {
	c := consumeResponse{
		HandoffID: u.ID, GuestSessionID: u.GuestSessionID, TenantID: u.TenantID, PropertyID: u.PropertyID, Dates: u.Dates,
		Occupancy: stay.Occupancy{Adults: u.Adults, Children: u.Children, Rooms: u.Rooms, ChildrenAges: u.ChildrenAges},
		Currency:  u.Currency, Locale: u.Locale,
		MintedAt: timestamp.Format(u.MintedAt), ExpiresAt: timestamp.Format(u.ExpiresAt), ConsumedAt: timestamp.Format(u.ConsumedAt),
	}
	if from := u.Campaign; from != nil {
		c.SourceCampaign = &campaign{from.Source, from.Medium, from.Campaign, timestamp.Format(from.CapturedAt)}
	}
	return c
}
