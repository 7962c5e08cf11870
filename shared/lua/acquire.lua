-- acquire: win the right to fill a cache entry, and see what is there. What was written by hand heals: an entry of a wrong
-- type is none and will be overwritten, such a lock is nobody's, and a lock without an end gets the lease's.
-- KEYS[1] lock    KEYS[2] entry    ARGV[1] token    ARGV[2] lease ms
-- returns {won 0|1, server's time µs, entry or nil}
local holder, entry = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
local won = type(holder) ~= 'string' or holder == ARGV[1] -- the latter: asked again, for want of an answer
if won then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local time = redis.call('TIME')
return {won and 1 or 0, time[1] * 1000000 + time[2], type(entry) == 'string' and entry}
