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

// policy has the time limits of an upstream. A call makes at most two tries. The second try starts
// after a possibly temporary failure of the first, or after hedgeDelay without a response; never
// both, so that a failing upstream gets at most twice the load.
type policy struct {
	timeout      time.Duration // of a single try
	totalTimeout time.Duration // of both tries together; 0: no further limit
	hedgeDelay   time.Duration // wait for the first try before the second starts in parallel; 0: no hedging
}

const (
	failuresToOpen = 5                     // consecutive failed tries
	openTimeout    = 4 * time.Second       // pause of an open breaker; then a single try decides
	minRemaining   = 20 * time.Millisecond // with less time left a try is pointless
)

// newBreaker returns the circuit breaker of an upstream. Only faults of the upstream count as
// failures; ErrNotFound counts as a success. Each change of state is logged.
func newBreaker(name string) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     openTimeout,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresToOpen },
		IsExcluded: func(err error) bool { // an error unrelated to the upstream's health
			return err != nil && !errors.Is(err, ErrNotFound) && !isFault(err)
		},
		OnStateChange: func(upstream string, from, to gobreaker.State) {
			slog.Warn("circuit breaker changed state", "upstream", upstream, "from", from.String(), "to", to.String())
		},
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrNotFound) },
	})
}

// isFault reports whether err counts against the upstream.
func isFault(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.fault
}

// outcome is the result of a try.
type outcome[T any] struct {
	value T
	err   error
}

// withRetry runs attempt under the client's policy and returns the first success, or ErrNotFound,
// and cancels the other try. After two failures it returns the first failure, because the second is
// often only a consequence.
func withRetry[T any](ctx context.Context, c *client, attempt func(context.Context) (T, error)) (T, error) {
	request := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.policy.totalTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.policy.totalTimeout)
		defer cancel()
	}

	var zero T
	if err := budgetError(ctx, c); err != nil {
		return zero, err
	}

	outcomes := make(chan outcome[T], 2) // buffered for both: the slower try must not wait for a reader
	running, remaining := 0, 2
	start := func() {
		running++
		remaining--
		go func() {
			value, err := attemptOnce(ctx, request, c, attempt)
			outcomes <- outcome[T]{value, err}
		}()
	}
	var hedge <-chan time.Time
	if c.policy.hedgeDelay > 0 {
		timer := time.NewTimer(c.policy.hedgeDelay)
		defer timer.Stop()
		hedge = timer.C
	}

	var failure error
	for start(); running > 0; {
		select {
		case <-hedge:
			if remaining > 0 && budgetError(ctx, c) == nil {
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
			if remaining > 0 && isRetryable(o.err) && budgetError(ctx, c) == nil {
				start()
			}
		}
	}
	return zero, failure
}

// attemptOnce makes a single try behind the breaker with the timeout of the policy, and classifies
// the failure. request is the context of the whole request, ctx the context of the call.
func attemptOnce[T any](ctx, request context.Context, c *client, attempt func(context.Context) (T, error)) (value T, err error) {
	startedAt := time.Now()
	ctx, span := otlp.StartUpstream(ctx, c.name)
	defer func() { c.recordAttempt(ctx, span, err, time.Since(startedAt)) }()
	defer func() { // no caller recovers on this goroutine, and a bad response must not stop the process
		if v := recover(); v != nil {
			err = &Error{Upstream: c.name, Reason: BadResponse, Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack()), fault: true}
		}
	}()
	_, err = c.breaker.Execute(func() (_ struct{}, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.policy.timeout)
		defer cancel()
		value, err = attempt(ctx)
		if err != nil && !errors.Is(err, ErrNotFound) {
			err = classifyTimeout(ctx, request, c, err, time.Since(startedAt))
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = &Error{Upstream: c.name, Reason: BreakerOpen}
	}
	return value, err
}

// recordAttempt ends the span of a try and records the metrics.
func (c *client) recordAttempt(ctx context.Context, span *otlp.Span, err error, took time.Duration) {
	errorType := ""
	switch reason := ReasonOf(err); {
	case err == nil || errors.Is(err, ErrNotFound):
	case reason != "":
		errorType = string(reason)
	default: // cancelled by the caller or by a faster try
		errorType = "canceled"
	}
	span.End(errorType)
	otlp.FromContext(ctx).RecordUpstreamCall(ctx, otlp.UpstreamCall{Service: c.name, ErrorType: errorType, Duration: took, BreakerState: int(c.breaker.State())})
}

// classifyTimeout maps err to the expired time limit, if any: cancellation by the caller, deadline
// of the request (Budget) or limit of the policy (Timeout). took is the duration of the try.
func classifyTimeout(ctx, request context.Context, c *client, err error, took time.Duration) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // also if request is cancelled: ctx is a child of request
		return fmt.Errorf("upstream: call %s: %w", c.name, context.Canceled)
	case request.Err() != nil:
		// A short try is no evidence against the upstream; a try with half of the timeout is.
		return &Error{Upstream: c.name, Reason: Budget, Err: context.DeadlineExceeded, fault: took >= c.policy.timeout/2}
	case ctx.Err() != nil:
		// Not wrapped: DeadlineExceeded would look like the deadline of the whole request.
		return &Error{Upstream: c.name, Reason: Timeout, retryable: true, fault: true}
	}
	return err
}

// budgetError returns an error if the remaining time is too short for another try, or ctx is
// cancelled; otherwise nil.
func budgetError(ctx context.Context, c *client) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("upstream: call %s: %w", c.name, context.Canceled)
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
