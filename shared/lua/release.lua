-- release: release a lock, if the caller still holds the lock.
-- KEYS[1] lock
-- ARGV[1] token
-- returns 1 released | 0 lock lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
