-- store: write a cache entry and release its lock, if the caller still holds the lock. A caller
-- that lost the lock, by a pause or by an invalidation, may have a stale value.
-- KEYS[1] entry
-- KEYS[2] lock
-- ARGV[1] token
-- ARGV[2] value
-- ARGV[3] TTL in ms
-- returns 1 stored | 0 lock lost
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return 1
