-- visit: note that a session was here: write the fields that changed, renew its life, and put a search on its history.
-- A session that is to be touched, not created, and is gone was cleared meanwhile: it must not come back.
-- KEYS[1] session hash    KEYS[2] history list
-- ARGV[1] create 0|1    ARGV[2] life ms    ARGV[3] history entry or ''    ARGV[4] entries kept    ARGV[5…] field, value, …
-- returns 1 written | 0 the session is gone
if ARGV[1] == '0' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if #ARGV > 4 then redis.call('HSET', KEYS[1], unpack(ARGV, 5)) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[3] ~= '' then
  redis.call('LPUSH', KEYS[2], ARGV[3])
  redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
