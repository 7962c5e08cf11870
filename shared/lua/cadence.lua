-- cadence: note a request of a client group, and count the group's and this session's in windows that end now. Times are
-- the caller's, ms: a request is counted where it was received, and instances whose clocks differ by a little move a window
-- by as little. Lives are durations, so no clock outlives its keys.
-- KEYS[1] times of the group's requests, newest first    KEYS[2] when one of them last had a cookie
-- KEYS[3] times of this session's requests; absent without a cookie
-- ARGV[1] now    ARGV[2] 1 note it | 0 only look    ARGV[3] times kept    ARGV[4] short window ms    ARGV[5] long window ms
-- returns {the group's in the short window, in the long one, the session's in the short one, in the long one,
--          ms since a request with a cookie, this one left out; -1 none in the long window}
local now, short, long = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function note(key)
  redis.call('LPUSH', key, ARGV[1])
  redis.call('LTRIM', key, 0, ARGV[3] - 1)
  redis.call('PEXPIRE', key, long)
end

-- count is how many times of a list are within a window; by halves, so that a long list costs a few steps more.
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
  note(KEYS[1])
  if KEYS[3] then
    note(KEYS[3])
    redis.call('SET', KEYS[2], ARGV[1], 'PX', long)
  end
end
return {
  count(KEYS[1], short), count(KEYS[1], long),
  KEYS[3] and count(KEYS[3], short) or 0, KEYS[3] and count(KEYS[3], long) or 0,
  cookie and math.max(now - cookie, 0) or -1,
}
