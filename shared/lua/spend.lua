-- spend: take one request from a bucket, unless it is empty. A bucket is kept as the moment at which it will be full again, µs since
-- 1970 by the server's clock; a full one is no key. What is no such moment counts as full, and one further off than that of an empty
-- bucket, left by lower limits or by a clock that went back, as empty.
-- KEYS[1] bucket    ARGV[1] µs in which it gains one request    ARGV[2] µs in which an empty one is full
-- returns {1 taken | 0 refused, µs until it is full, server's time µs}
local time, kept = redis.call('TIME'), redis.pcall('GET', KEYS[1])
local now, whole = time[1] * 1000000 + time[2], tonumber(ARGV[2])
local full = type(kept) == 'string' and tonumber(kept) or 0
local lack = math.min(math.max(full - now, 0), whole)
local after = lack + ARGV[1]
if after > whole then return {0, lack, now} end
redis.call('SET', KEYS[1], string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
return {1, after, now}
