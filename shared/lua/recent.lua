-- recent: put what was viewed in front of the list, each property once, and keep so many.
-- KEYS[1] recently viewed list    KEYS[2] mark of a cleared session
-- ARGV[1] life ms    ARGV[2] entries kept    ARGV[3…] property id, entry, …, oldest first
-- returns entries in the list | 0 the session was cleared
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
for i = 3, #ARGV, 2 do
  for _, old in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    if string.find(old, ARGV[i], 1, true) then redis.call('LREM', KEYS[1], 0, old) end
  end
  redis.call('LPUSH', KEYS[1], ARGV[i + 1])
end
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('LLEN', KEYS[1])
