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

// Spent is what became of a bucket that was asked for one request.
type Spent struct {
	Taken bool
	Lack  time.Duration // until it is full, what was taken included
	At    int64         // server's time, µs since 1970
}

// Spend queues the taking of one request from a bucket, for a pipeline that Exec runs; then ReadSpent says whether there
// was one. The bucket gains one request in each gain, and an empty one is full after whole; both are whole microseconds.
func Spend(ctx context.Context, pipe redis.Pipeliner, bucket string, gain, whole time.Duration) *redis.Cmd {
	return spend().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds(), whole.Microseconds())
}

// ReadSpent reads the answer to Spend.
func ReadSpent(cmd *redis.Cmd) (Spent, error) {
	answer, err := cmd.Int64Slice()
	if err != nil {
		return Spent{}, err
	}
	return Spent{answer[0] == 1, time.Duration(answer[1]) * time.Microsecond, answer[2]}, nil
}

// Refund queues the giving back of what Spend took, for a pipeline that Exec runs.
func Refund(ctx context.Context, pipe redis.Pipeliner, bucket string, gain time.Duration) *redis.Cmd {
	return refund().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds())
}
