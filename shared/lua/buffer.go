package lua

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var findBuffered = load("find_buffered.lua")

// FindBuffered returns the rows of one session among count rows of the spill, oldest first, after passing over the skip oldest;
// more says that there may be others behind them. A row is told by the session's id in it, which is in no other's.
func FindBuffered(ctx context.Context, c redis.UniversalClient, list, sessionID string, skip, count int64) (rows []string, more bool, err error) {
	answer, err := findBuffered().Run(ctx, c, []string{list}, sessionID, skip, count).Slice()
	if err != nil {
		return nil, false, err
	}
	for _, row := range answer[1:] {
		rows = append(rows, row.(string))
	}
	return rows, answer[0].(int64) == 1, nil
}

var removeBuffered = load("remove_buffered.lua")

// RemoveBuffered removes rows from the spill, each once, and looks for each at most within rows from the oldest end. It returns how
// many it found.
func RemoveBuffered(ctx context.Context, c redis.UniversalClient, list string, rows []string, within int64) (removed int64, err error) {
	args := make([]any, 0, 1+len(rows))
	args = append(args, within)
	for i := len(rows) - 1; i >= 0; i-- { // as they lie: the oldest first
		args = append(args, rows[i])
	}
	return removeBuffered().Run(ctx, c, []string{list}, args...).Int64()
}
