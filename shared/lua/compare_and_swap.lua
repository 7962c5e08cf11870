-- compare_and_swap: replace the caller's claim with the computed response, if the claim is still
-- stored. A claim is lost when it expired, or when the session was cleared; the response must not
-- be stored then.
-- KEYS[1] key
-- ARGV[1] claim
-- ARGV[2] response
-- ARGV[3] TTL in ms
-- returns 1 stored | 0 claim lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
