-- wishlist_append: put one entry behind the copy of a wishlist, if the copy is the list that the entry was added to.
-- A copy that is newer has it already.
-- KEYS[1] session hash    KEYS[2] wishlist list
-- ARGV[1] version before, 0 for a list that never was    ARGV[2] version now    ARGV[3] entry    ARGV[4] life ms
-- returns 1 it is in the copy | 0 the copy is an older list or none, or the session is gone
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local stands = redis.call('HGET', KEYS[1], 'wishlistVersion') or '0'
if tonumber(stands) >= tonumber(ARGV[2]) then return 1 end
if stands ~= ARGV[1] then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'wishlistVersion', ARGV[2])
return 1
