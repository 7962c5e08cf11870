-- set_unless_cleared: set a key of a session, unless the session was cleared. A clear is final.
-- KEYS[1] key
-- KEYS[2] marker of a cleared session
-- ARGV[1] value
-- ARGV[2] TTL in ms
-- returns 1 stored | 0 session cleared
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
