-- collide: note that a session began at a client group. The request that began it had no cookie yet, so it is counted for
-- the session here. Both times are the caller's, ms; see cadence.
-- KEYS[1] sessions of the group by when they began    KEYS[2] times of the session's requests
-- ARGV[1] now    ARGV[2] mark of the session    ARGV[3] sessions kept    ARGV[4] their life ms    ARGV[5] life of KEYS[2] ms
-- returns sessions of the group
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[4])
if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) == 1 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('LPUSH', KEYS[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
return redis.call('ZCARD', KEYS[1])
