-- refund: give back what spend took from a bucket. One that is full by now has it back already.
-- KEYS[1] bucket    ARGV[1] µs in which it gains one request
-- returns µs until it is full
local time, kept = redis.call('TIME'), redis.pcall('GET', KEYS[1])
local now = time[1] * 1000000 + time[2]
local full = (type(kept) == 'string' and tonumber(kept) or 0) - ARGV[1]
if full <= now then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
return full - now
