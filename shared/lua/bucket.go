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

// SpendResult is the reply to Spend.
type SpendResult struct {
	Taken      bool          // false: the bucket is empty
	UntilFull  time.Duration // until the bucket is full again, after this request
	ServerTime int64         // server time, µs since 1970
}

// Spend queues a script on a pipeline for Exec: take a token from a token bucket. After Exec, pass
// the result to ParseSpend. The bucket gains a token per gain, and an empty bucket is full after
// whole; both are whole microseconds above 0. The key expires when the bucket is full. An empty
// bucket is unchanged. An absent key and a value without a number count as a full bucket.
func Spend(ctx context.Context, pipe redis.Pipeliner, bucket string, gain, whole time.Duration) *redis.Cmd {
	return spend().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds(), whole.Microseconds())
}

// ParseSpend returns the reply to Spend after Exec, or the zero SpendResult and the error of the
// command. Before Exec it returns an error too. CPU only.
func ParseSpend(cmd *redis.Cmd) (SpendResult, error) {
	reply, err := cmd.Int64Slice()
	if err != nil {
		return SpendResult{}, err
	}
	return SpendResult{reply[0] == 1, time.Duration(reply[1]) * time.Microsecond, reply[2]}, nil
}

// Refund queues a script on a pipeline for Exec: return a token taken by Spend. gain is that of
// Spend. A full bucket stays full; an absent key and a value without a number count as full. A
// repeated refund returns another token.
func Refund(ctx context.Context, pipe redis.Pipeliner, bucket string, gain time.Duration) *redis.Cmd {
	return refund().EvalSha(ctx, pipe, []string{bucket}, gain.Microseconds())
}
