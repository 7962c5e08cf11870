-- remember: keep something of a session for a while, unless the session was cleared meanwhile: a clear is final.
-- KEYS[1] key    KEYS[2] mark of a cleared session    ARGV[1] value    ARGV[2] its life ms
-- returns 1 kept | 0 the session was cleared
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
