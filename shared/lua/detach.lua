-- detach: begin to invalidate a tag: note when, and take its entries out of the tag, so that what is stored from now on
-- is none of them. They stay in a third key until they are deleted, so that a repetition finds what a crash left.
-- KEYS[1] tag's entries    KEYS[2] tag's last invalidation    KEYS[3] entries being deleted
-- ARGV[1] life of the note ms    ARGV[2] life of the third key ms
-- returns {time noted µs, entry keys …}
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local noted = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
redis.call('SET', KEYS[2], noted, 'PX', ARGV[1])
for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('ZADD', KEYS[3], noted, entry)
end
redis.call('DEL', KEYS[1])
redis.call('PEXPIRE', KEYS[3], ARGV[2])
local reply = redis.call('ZRANGE', KEYS[3], 0, -1)
table.insert(reply, 1, tonumber(noted))
return reply
