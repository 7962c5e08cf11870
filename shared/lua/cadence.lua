-- cadence: record a request of a client group, and count the requests of the group and of this
-- session in two sliding windows that end now. The instance that received the request sets the
-- times, in ms. A clock difference between instances shifts a window by the same amount. TTLs are
-- durations, so they do not depend on these clocks.
-- KEYS[1] times of the group's requests, newest first
-- KEYS[2] time of the group's last request with a cookie
-- KEYS[3] times of this session's requests; absent without a cookie
-- ARGV[1] now
-- ARGV[2] 1 record | 0 only count
-- ARGV[3] times to keep
-- ARGV[4] short window in ms
-- ARGV[5] long window in ms
-- returns {requests of the group in the short window, in the long window, requests of the session
--         in the short window, in the long window, ms since the previous request with a cookie or
--         -1 without one in the long window}
local now, short, long = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function record(key)
  redis.call('LPUSH', key, ARGV[1])
  redis.call('LTRIM', key, 0, ARGV[3] - 1)
  redis.call('PEXPIRE', key, long)
end

-- count returns the number of times of a list within a window. It uses binary search, so a long
-- list costs few steps.
local function count(key, within)
  local low, high = 0, redis.call('LLEN', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if now - redis.call('LINDEX', key, middle) < within then low = middle + 1 else high = middle end
  end
  return low
end

local cookie = redis.call('GET', KEYS[2])
if ARGV[2] == '1' then
  record(KEYS[1])
  if KEYS[3] then
    record(KEYS[3])
    redis.call('SET', KEYS[2], ARGV[1], 'PX', long)
  end
end
return {
  count(KEYS[1], short), count(KEYS[1], long),
  KEYS[3] and count(KEYS[3], short) or 0, KEYS[3] and count(KEYS[3], long) or 0,
  cookie and math.max(now - cookie, 0) or -1,
}
