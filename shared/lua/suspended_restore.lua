-- suspended_restore: put the suspended set back after it was lost, unless somebody has done so or changed it meanwhile.
-- The version begins at the server's time in µs: above every version there was, so that no copy in memory passes for right.
-- KEYS[1] set    KEYS[2] version    KEYS[3] who restores    ARGV[1] token    ARGV[2…] tenants
-- returns the version restored, or nil when it was refused
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('GET', KEYS[3]) ~= ARGV[1] then return false end
redis.call('DEL', KEYS[1], KEYS[3])
for i = 2, #ARGV do redis.call('SADD', KEYS[1], ARGV[i]) end
local time = redis.call('TIME')
local version = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[2], version)
return version
