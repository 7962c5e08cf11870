-- suspended_change: add a tenant to the suspended set or take it off, and give the set a new version.
-- Without a version the set was lost and is left so: whoever needs it restores it from the record, which has this change.
-- KEYS[1] set    KEYS[2] version    ARGV[1] SADD|SREM    ARGV[2] tenant
-- returns 1 changed | 0 the set was lost
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call(ARGV[1], KEYS[1], ARGV[2])
redis.call('INCR', KEYS[2])
return 1
