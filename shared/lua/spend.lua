-- spend: take one token from a token bucket, unless the bucket is empty. The key stores the time at
-- which the bucket is full again, in µs since 1970 by the server's clock. A full bucket has no key,
-- and an invalid value counts as full. A time later than that of an empty bucket counts as empty;
-- lower limits or a clock set back leave such a time.
-- KEYS[1] bucket
-- ARGV[1] µs per token
-- ARGV[2] µs from empty to full
-- returns {1 taken | 0 rejected, µs until the bucket is full, server time in µs}
local time, stored = redis.call('TIME'), redis.pcall('GET', KEYS[1])
local now, capacity = time[1] * 1000000 + time[2], tonumber(ARGV[2])
local full = type(stored) == 'string' and tonumber(stored) or 0
local deficit = math.min(math.max(full - now, 0), capacity)
local after = deficit + ARGV[1]
if after > capacity then return {0, deficit, now} end
redis.call('SET', KEYS[1], string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
return {1, after, now}
