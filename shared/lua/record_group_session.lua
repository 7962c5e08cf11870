-- record_group_session: record a new session of a client group. The first request of the session
-- had no cookie, so this script also counts that request for the session. The caller sets the time,
-- in ms, as in cadence.
-- KEYS[1] sessions of the group, scored by start time
-- KEYS[2] times of the session's requests
-- ARGV[1] now
-- ARGV[2] session hash
-- ARGV[3] sessions to keep
-- ARGV[4] TTL of KEYS[1] in ms
-- ARGV[5] TTL of KEYS[2] in ms
-- returns the number of sessions of the group
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[4])
if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) == 1 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('LPUSH', KEYS[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
return redis.call('ZCARD', KEYS[1])
