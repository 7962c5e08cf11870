-- refund: return one token that spend took from a bucket. A bucket that is full again needs no
-- refund.
-- KEYS[1] bucket
-- ARGV[1] µs per token
-- returns µs until the bucket is full
local time, stored = redis.call('TIME'), redis.pcall('GET', KEYS[1])
local now = time[1] * 1000000 + time[2]
local full = (type(stored) == 'string' and tonumber(stored) or 0) - ARGV[1]
if full <= now then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
return full - now
