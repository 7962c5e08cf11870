package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/sony/gobreaker/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// policy is how long an upstream may take. Every upstream gets at most two tries a call: the second one starts when the
// first has failed in a way that may pass, or when it has been silent for hedge; never both, so that an upstream in
// trouble sees at most twice its load.
type policy struct {
	timeout      time.Duration // of one try
	totalTimeout time.Duration // of both together; 0: what the tries take
	hedgeDelay   time.Duration // silence after which the second try starts beside the first; 0: never
}

const (
	failuresToOpen = 5                     // tries in a row
	openTimeout    = 4 * time.Second       // then one try is let through
	minRemaining   = 20 * time.Millisecond // less left than this brings no answer
)

func newBreaker(name string) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     openTimeout,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresToOpen },
		IsExcluded: func(err error) bool { // says nothing about the upstream's health
			return err != nil && !errors.Is(err, ErrNotFound) && !isFault(err)
		},
		OnStateChange: func(upstream string, from, to gobreaker.State) {
			slog.Warn("a breaker changed its state", "upstream", upstream, "from", from.String(), "to", to.String())
		},
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrNotFound) },
	})
}

func isFault(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.fault
}

type outcome[T any] struct {
	value T
	err   error
}

// withRetry runs attempt within the client's policy and returns the first good outcome; the other try is cancelled then.
// When there is none it returns the first failure, because the second one is often only its echo.
func withRetry[T any](ctx context.Context, c *client, attempt func(context.Context) (T, error)) (T, error) {
	request := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.policy.totalTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.policy.totalTimeout)
		defer cancel()
	}

	var none T
	if err := budgetError(ctx, c); err != nil {
		return none, err
	}

	outcomes := make(chan outcome[T], 2) // room for both: a loser must not wait for a reader
	running, left := 0, 2
	start := func() {
		running++
		left--
		go func() {
			answer, err := attemptOnce(ctx, request, c, attempt)
			outcomes <- outcome[T]{answer, err}
		}()
	}
	var silence <-chan time.Time
	if c.policy.hedgeDelay > 0 {
		timer := time.NewTimer(c.policy.hedgeDelay)
		defer timer.Stop()
		silence = timer.C
	}

	var failure error
	for start(); running > 0; {
		select {
		case <-silence:
			if left > 0 && budgetError(ctx, c) == nil {
				start()
			}
		case o := <-outcomes:
			running--
			if o.err == nil || errors.Is(o.err, ErrNotFound) {
				return o.value, o.err
			}
			if failure == nil || ReasonOf(failure) == BreakerOpen {
				failure = o.err
			}
			if left > 0 && isRetryable(o.err) && budgetError(ctx, c) == nil {
				start()
			}
		}
	}
	return none, failure
}

// attemptOnce is one try: let through by the breaker, limited in time, its failure named.
func attemptOnce[T any](ctx, request context.Context, c *client, attempt func(context.Context) (T, error)) (answer T, err error) {
	began := time.Now()
	ctx, part := otlp.StartUpstream(ctx, c.name)
	defer func() { c.recordAttempt(ctx, part, err, time.Since(began)) }()
	defer func() { // this is a goroutine of ours: nobody else would keep one bad answer from ending the process
		if v := recover(); v != nil {
			err = &Error{Upstream: c.name, Reason: BadResponse, Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack()), fault: true}
		}
	}()
	_, err = c.breaker.Execute(func() (_ struct{}, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.policy.timeout)
		defer cancel()
		answer, err = attempt(ctx)
		if err != nil && !errors.Is(err, ErrNotFound) {
			err = classifyTimeout(ctx, request, c, err, time.Since(began))
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = &Error{Upstream: c.name, Reason: BreakerOpen}
	}
	return answer, err
}

// recordAttempt ends the span of a try and counts it.
func (c *client) recordAttempt(ctx context.Context, part *otlp.Span, err error, took time.Duration) {
	how := ""
	switch reason := ReasonOf(err); {
	case err == nil || errors.Is(err, ErrNotFound):
	case reason != "":
		how = string(reason)
	default: // the caller left, or the other try was faster
		how = "canceled"
	}
	part.End(how)
	otlp.FromContext(ctx).RecordUpstreamCall(ctx, otlp.UpstreamCall{Service: c.name, ErrorType: how, Duration: took, BreakerState: int(c.breaker.State())})
}

// classifyTimeout names a failure by what ran out, when something did: the request's budget, the caller's patience or our own.
func classifyTimeout(ctx, request context.Context, c *client, err error, took time.Duration) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // also of the request: ctx is its child
		return fmt.Errorf("upstream: ask %s: %w", c.name, context.Canceled)
	case request.Err() != nil:
		// A short try proves nothing; one that had half of what the upstream is granted does.
		return &Error{Upstream: c.name, Reason: Budget, Err: context.DeadlineExceeded, fault: took >= c.policy.timeout/2}
	case ctx.Err() != nil:
		// Not wrapped: it would pass for the deadline of the whole request.
		return &Error{Upstream: c.name, Reason: Timeout, retryable: true, fault: true}
	}
	return err
}

// budgetError says why another try is not worth its while: the time left could not bring an answer.
func budgetError(ctx context.Context, c *client) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("upstream: ask %s: %w", c.name, context.Canceled)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < minRemaining {
		return &Error{Upstream: c.name, Reason: Budget, Err: context.DeadlineExceeded}
	}
	return nil
}

func isRetryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.retryable
}
