-- extend: extend the lease of a lock, if the caller still holds the lock.
-- KEYS[1] lock
-- ARGV[1] token
-- ARGV[2] lease in ms
-- returns 1 extended | 0 lock lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
