-- suspended_restore: restore the missing set of suspended tenants, unless the set exists again or
-- the token was revoked. The version starts at the server time in µs. This is above every earlier
-- version, so an outdated copy in a process never has the current version.
-- KEYS[1] set
-- KEYS[2] version
-- KEYS[3] token of the restoring reader
-- ARGV[1] token
-- ARGV[2…] tenants
-- returns the new version, or nil if rejected
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('GET', KEYS[3]) ~= ARGV[1] then return false end
redis.call('DEL', KEYS[1], KEYS[3])
for i = 2, #ARGV do redis.call('SADD', KEYS[1], ARGV[i]) end
local time = redis.call('TIME')
local version = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[2], version)
return version
