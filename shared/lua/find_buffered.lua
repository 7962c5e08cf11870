-- find_buffered: find the rows of one session in a range of the outbox buffer, counted from the
-- oldest end.
-- KEYS[1] buffer list, newest first
-- ARGV[1] session id
-- ARGV[2] rows to skip
-- ARGV[3] rows to read
-- returns {1 if more rows may follow | 0, row, …}, oldest first
local skip, count = tonumber(ARGV[2]), tonumber(ARGV[3])
local rows = redis.call('LRANGE', KEYS[1], -skip - count, -skip - 1)
local found = {#rows == count and 1 or 0}
for i = #rows, 1, -1 do
  if string.find(rows[i], ARGV[1], 1, true) then found[#found + 1] = rows[i] end
end
return found
