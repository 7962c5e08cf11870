-- register: add a cache entry to a tag, before the entry is stored.
-- KEYS[1] entries of the tag, scored by expiry
-- KEYS[2] time of the tag's last invalidation
-- ARGV[1] key of the entry
-- ARGV[2] expiry of the entry in ms
-- ARGV[3] now in ms
-- ARGV[4] TTL of the tag in ms
-- returns server time of the last invalidation in µs, or 0 without a recent one
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
-- GT: if this entry is not stored in the end, the entry to be replaced keeps its later expiry
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
-- a TTL, not a time: times come from the caller's clock, which may differ from the server's
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return tonumber(redis.call('GET', KEYS[2]) or 0)
