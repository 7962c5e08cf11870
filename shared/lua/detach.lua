-- detach: begin to invalidate a tag, or go on: note when, and take some of its entries out of the tag. They stay in a third
-- key, under the time of the note, until they are deleted, so that a repetition finds what a crash left; what is there already
-- comes first. Some, because a tag may have a hundred thousand entries, and while a script runs nobody else is served.
-- KEYS[1] tag's entries    KEYS[2] tag's last invalidation    KEYS[3] entries being deleted
-- ARGV[1] life of the note ms    ARGV[2] life of the third key ms    ARGV[3] how many to take
-- returns {time under which they are in the third key µs, 1 there are more | 0, entry keys …}
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local at = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
redis.call('SET', KEYS[2], at, 'PX', ARGV[1])
local left = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if left[1] then
  at = left[2]
else
  local taken = {}
  for i, entry in ipairs(redis.call('ZPOPMIN', KEYS[1], ARGV[3])) do
    if i % 2 == 1 then -- each is followed by its score
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
