-- wishlist_replace: replace the copy of a wishlist, unless the copy is newer.
-- KEYS[1] session hash
-- KEYS[2] wishlist list
-- ARGV[1] version in ms
-- ARGV[2] TTL in ms
-- ARGV[3…] entries
-- returns 1 replaced | 0 copy is newer, or the session is missing
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local version = tonumber(redis.call('HGET', KEYS[1], 'wishlistVersion') or '')
if version and version > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[2])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[1], 'wishlistVersion', ARGV[1])
return 1
