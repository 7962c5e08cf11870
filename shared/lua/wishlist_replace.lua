-- wishlist_replace: make the copy of a wishlist that list, unless the copy is a newer one.
-- KEYS[1] session hash    KEYS[2] wishlist list    ARGV[1] version, ms    ARGV[2] life ms    ARGV[3…] entries
-- returns 1 replaced | 0 a newer one stands, or the session is gone
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local stands = tonumber(redis.call('HGET', KEYS[1], 'wishlistVersion') or '')
if stands and stands > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[2])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[1], 'wishlistVersion', ARGV[1])
return 1
