-- wishlist_append: append one entry to the copy of a wishlist, if the copy has the version before
-- the addition. A newer copy already contains the entry.
-- KEYS[1] session hash
-- KEYS[2] wishlist list
-- ARGV[1] version before, 0 for a new list
-- ARGV[2] version after
-- ARGV[3] entry
-- ARGV[4] TTL in ms
-- returns 1 copy contains the entry | 0 copy is older or missing, or the session is missing
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local version = redis.call('HGET', KEYS[1], 'wishlistVersion') or '0'
if tonumber(version) >= tonumber(ARGV[2]) then return 1 end
if version ~= ARGV[1] then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'wishlistVersion', ARGV[2])
return 1
