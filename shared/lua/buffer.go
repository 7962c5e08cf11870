package lua

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var findBuffered = load("find_buffered.lua")

// FindBuffered returns the rows of a session among count rows of the outbox buffer, oldest first,
// after skipping the skip oldest rows. count must be above 0. more reports that further rows may
// follow. A row belongs to the session if it contains the session id, anywhere; "" matches every
// row. 1 round trip; Redis scans count rows, and only matching rows travel. An absent list gives
// (nil, false, nil); an error gives (nil, false, err). It changes no row.
func FindBuffered(ctx context.Context, c redis.UniversalClient, list, sessionID string, skip, count int64) (rows []string, more bool, err error) {
	reply, err := findBuffered().Run(ctx, c, []string{list}, sessionID, skip, count).Slice()
	if err != nil {
		return nil, false, err
	}
	for _, row := range reply[1:] {
		rows = append(rows, row.(string))
	}
	return rows, reply[0].(int64) == 1, nil
}

var removeBuffered = load("remove_buffered.lua")

// RemoveBuffered removes rows from the outbox buffer, each once, and searches each row only among
// the within oldest rows. rows are newest first. It returns the number of removed rows; a missing
// row is no error, so the call may be repeated. 1 round trip; Redis compares at most len(rows) ×
// within rows. After an error the number is 0, but rows may have been removed.
func RemoveBuffered(ctx context.Context, c redis.UniversalClient, list string, rows []string, within int64) (removed int64, err error) {
	args := make([]any, 0, 1+len(rows))
	args = append(args, within)
	for i := len(rows) - 1; i >= 0; i-- { // in search order: oldest first
		args = append(args, rows[i])
	}
	return removeBuffered().Run(ctx, c, []string{list}, args...).Int64()
}
