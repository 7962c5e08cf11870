-- remove_buffered: remove rows from the oldest end of the outbox buffer, each once. The search is
-- limited, so a second caller finds nothing without a search of the whole list.
-- KEYS[1] buffer list, newest first
-- ARGV[1] rows to search from the oldest end
-- ARGV[2…] rows
-- returns the number of removed rows
local removed = 0
for i = 2, #ARGV do
  if redis.call('LPOS', KEYS[1], ARGV[i], 'RANK', -1, 'MAXLEN', ARGV[1]) then
    removed = removed + redis.call('LREM', KEYS[1], -1, ARGV[i])
  end
end
return removed
