package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	spend  = load("spend.lua")
	refund = load("refund.lua")
)

// SpendResult is what became of a bucket that was asked for one request.
type SpendResult struct {
	Taken      bool
	UntilFull  time.Duration // until it is full, what was taken included
	ServerTime int64         // server's time, µs since 1970
}

// Spend queues the taking of one request from a bucket, for a pipeline that Exec runs; then ReadSpent says whether there
// was one. The bucket gains one request in each gain, and an empty one is full after whole; both are whole microseconds.
func Spend(ctx context.Context, pipe redis.Pipeliner, bucket string, gain, whole time.Duration) *redis.Cmd {
	return spend().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds(), whole.Microseconds())
}

// ParseSpend reads the answer to Spend.
func ParseSpend(cmd *redis.Cmd) (SpendResult, error) {
	answer, err := cmd.Int64Slice()
	if err != nil {
		return SpendResult{}, err
	}
	return SpendResult{answer[0] == 1, time.Duration(answer[1]) * time.Microsecond, answer[2]}, nil
}

// Refund queues the giving back of what Spend took, for a pipeline that Exec runs.
func Refund(ctx context.Context, pipe redis.Pipeliner, bucket string, gain time.Duration) *redis.Cmd {
	return refund().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds())
}
