-- detach: start or continue the invalidation of a tag. The script stores the invalidation time and
-- moves a batch of the tag's entries to the pending set, scored by that time, until the caller has
-- deleted them. A retry after a crash finds the entries of an earlier batch in the pending set and
-- returns them first. The batch is limited, because a tag may have 100,000 entries and Redis serves
-- no other client while a script runs.
-- KEYS[1] entries of the tag
-- KEYS[2] time of the tag's last invalidation
-- KEYS[3] pending set
-- ARGV[1] TTL of KEYS[2] in ms
-- ARGV[2] TTL of KEYS[3] in ms
-- ARGV[3] batch size
-- returns {score of the batch in the pending set in µs, 1 if more entries remain | 0, entry keys …}
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local at = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
redis.call('SET', KEYS[2], at, 'PX', ARGV[1])
local pending = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if pending[1] then
  at = pending[2]
else
  local taken = {}
  for i, entry in ipairs(redis.call('ZPOPMIN', KEYS[1], ARGV[3])) do
    if i % 2 == 1 then -- the even elements are scores
      table.insert(taken, at)
      table.insert(taken, entry)
    end
  end
  if #taken > 0 then redis.call('ZADD', KEYS[3], unpack(taken)) end
end
redis.call('PEXPIRE', KEYS[3], ARGV[2])
local reply = redis.call('ZRANGEBYSCORE', KEYS[3], at, at)
local more = redis.call('EXISTS', KEYS[1]) == 1 or redis.call('ZCARD', KEYS[3]) > #reply
table.insert(reply, 1, more and 1 or 0)
table.insert(reply, 1, tonumber(at))
return reply
