-- register: note that a cache entry carries a tag, before the entry is stored.
-- KEYS[1] tag's entries    KEYS[2] tag's last invalidation
-- ARGV[1] entry's key    ARGV[2] time until it is kept ms    ARGV[3] time now ms    ARGV[4] life ms
-- returns the server's time of the last invalidation µs, 0 when there was none lately
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
-- GT: should this entry not be stored after all, the one it was to replace stays for as long as it said
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
-- a life, not a date: the dates are the caller's clock, which need not be the server's
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return tonumber(redis.call('GET', KEYS[2]) or 0)
