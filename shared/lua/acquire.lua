-- acquire: take the lock on loading a cache entry, and read the entry. Keys written by hand are
-- repaired: an entry of the wrong type counts as missing and is overwritten later, a lock of the
-- wrong type counts as free, and a lock without a TTL gets the TTL of the lease.
-- KEYS[1] lock
-- KEYS[2] entry
-- ARGV[1] token
-- ARGV[2] lease in ms
-- returns {1 if acquired | 0, server time in µs, entry or nil}
local holder, entry = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
local acquired = type(holder) ~= 'string' or holder == ARGV[1] -- same token: a retry after a lost reply
if acquired then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local time = redis.call('TIME')
return {acquired and 1 or 0, time[1] * 1000000 + time[2], type(entry) == 'string' and entry}
