-- store: write a cache entry and give up its lock, if the lock is still ours: whoever lost it, by dying a while or by an
-- invalidation, has an answer that may be old.
-- KEYS[1] entry    KEYS[2] lock    ARGV[1] token    ARGV[2] entry    ARGV[3] its life ms
-- returns 1 stored | 0 refused
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return 1
