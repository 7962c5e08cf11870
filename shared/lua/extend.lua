-- extend: keep a lock a while longer, if it is still ours.
-- KEYS[1] lock    ARGV[1] token    ARGV[2] lease ms
-- returns 1 ours | 0 lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
