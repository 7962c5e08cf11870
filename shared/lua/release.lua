-- release: give up a lock, if it is still ours.
-- KEYS[1] lock    ARGV[1] token
-- returns 1 given up | 0 was lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
