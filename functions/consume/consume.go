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

// Consume handles POST /internal/handoff/{id}/consume. Safe for concurrent use.
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

const consumeTimeout = time.Second // for all statements of a consumption together

// Serve answers POST /internal/handoff/{id}/consume: the first call consumes the handoff and
// returns the handoff to the tenant's BFF, with 200. Only listed service accounts may call it; any
// other caller is 403 before the body is read. While the issuer's keys are unknown and cannot be
// fetched, every caller is 403. A fetch takes up to 1 s more, at most every 10 s, outside the time
// of the statements; other callers wait for the fetch.
//
// The cost is a Postgres statement; a refusal costs a second transaction of three round trips, or
// five for a counted replay, and then a Redis round trip of at most 100 ms. All these have 1 s
// together and continue when the client hangs up.
//
// Refusals: 400, 413 or 422 for a malformed request, 401 for a token that is not genuine, 404 for
// an unknown handoff, 409 for a consumed handoff, 410 for an expired handoff, and 403 for a
// suspended tenant. A 409 also records a bot verdict, and a penalty for the minting guest; calls
// with the same key count once.
//
// Without Postgres the answer is 503, and the handoff may be consumed all the same. Without Redis
// only the penalty of a replay is lost. A caller repeats a call with a lost answer or a 503 with
// the same account, consumedBy and Idempotency-Key within 60 s of the consumption, and gets the
// same answer. Any other repetition, also without a key, is a 409 with the penalty.
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
	attempt := ledger.Attempt{Consumer: in.ConsumedBy, At: now}
	if key != "" {
		sum := sha256.Sum256([]byte(account + "|" + key)) // keys of different accounts never match
		attempt.KeyHash = sum[:]
	}
	// The decision continues when the caller hangs up, but keeps a deadline.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), consumeTimeout)
	defer cancel()
	done := web.FromContext(ctx).Phase("consume")
	consumed, err := ledger.Consume(ctx, c.db, token.ID, attempt)
	done()
	switch {
	case errors.Is(err, ledger.ErrNotConsumed):
		return c.handleRejected(ctx, r, token, attempt)
	case err != nil:
		return postgres.Problem(err)
	}
	return web.WriteJSON(w, http.StatusOK, newConsumeResponse(&consumed))
}

// check returns a problem with all faults of the request, or nil.
func (r *request) check() error {
	var faults problem.FieldErrors
	if r.Token == "" {
		faults.Add("token", "required", "Send the token of the handoff.")
	}
	switch by := r.ConsumedBy; {
	case by == "":
		faults.Add("consumedBy", "required", "The name of the calling instance is required.")
	case len(by) > 128 || strings.ContainsFunc(by, func(c rune) bool { return c <= ' ' || c > '~' }):
		faults.Add("consumedBy", "malformed", "Must be 1 to 128 printable ASCII characters without spaces.")
	}
	if faults != nil {
		return problem.Invalid(faults...)
	}
	return nil
}

// verify accepts a genuine token of the handoff in the path. An expired token is accepted too:
// after a consumption in time the caller may repeat the call, and ledger.Consume checks the time.
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

// handleRejected returns the problem of an unconsumed handoff. A single transaction reads the row
// and records a replay with its event, before the answer; the status cannot change in between,
// because a consumed handoff stays consumed. An error of Postgres is 503.
func (c *Consume) handleRejected(ctx context.Context, r *http.Request, token handoff.Handoff, attempt ledger.Attempt) error {
	defer web.FromContext(ctx).Phase("reject")()
	var (
		status  ledger.Status
		counted bool
	)
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) (err error) {
		status, err = ledger.FindStatus(ctx, tx, token.ID)
		if err == nil && status.Consumed {
			counted, err = c.replays.record(ctx, tx, r, replay{attempt, token.ID}, status)
		}
		return err
	})
	expired := !attempt.At.Before(token.ExpiresAt)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && !expired:
		return problem.New(problem.HandoffNotFound, "This handoff is not on record.", err)
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return postgres.Problem(err)
	case status.Consumed:
		if counted {
			c.replays.addPenalty(ctx, status.Fingerprint)
		}
		return problem.New(problem.HandoffReplayed, "A handoff is used once.", nil)
	case expired: // also when the expired row is deleted already
		return problem.New(problem.HandoffExpired, "The guest must ask for a new one.", nil)
	case status.Suspended:
		return problem.New(problem.TenantSuspended, "This hotel takes no bookings at present.", nil)
	}
	// The tenant was reinstated between the two statements.
	return problem.New(problem.UpstreamUnavailable, "Please try again.", nil).WithRetryAfter(time.Second)
}

func newConsumeResponse(u *ledger.Consumed) consumeResponse {
	c := consumeResponse{
		HandoffID: u.ID, GuestSessionID: u.GuestSessionID, TenantID: u.TenantID, PropertyID: u.PropertyID, Dates: u.Dates,
		Occupancy: stay.Occupancy{Adults: u.Adults, Children: u.Children, Rooms: u.Rooms, ChildrenAges: u.ChildrenAges},
		Currency:  u.Currency, Locale: u.Locale,
		MintedAt: timestamp.Format(u.MintedAt), ExpiresAt: timestamp.Format(u.ExpiresAt), ConsumedAt: timestamp.Format(u.ConsumedAt),
	}
	if source := u.Campaign; source != nil {
		c.SourceCampaign = &campaign{source.Source, source.Medium, source.Campaign, timestamp.Format(source.CapturedAt)}
	}
	return c
}
