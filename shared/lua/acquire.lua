-- acquire: win the right to fill a cache entry, and see what is there.
-- KEYS[1] lock    KEYS[2] entry    ARGV[1] token    ARGV[2] lease ms
-- returns {won 0|1, server's time µs, entry or nil}
local won = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if not won then won = redis.call('GET', KEYS[1]) == ARGV[1] end -- asked again, for want of an answer
local time = redis.call('TIME')
return {won and 1 or 0, time[1] * 1000000 + time[2], redis.call('GET', KEYS[2])}
