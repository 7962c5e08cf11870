-- suspended_change: add a tenant to the suspended set or take it off, and give the set a new version.
-- Without a version the set was lost and is left so: whoever needs it restores it from the record, which has this change.
-- Who is restoring it just now may have read the record before the change, and loses the right to.
-- KEYS[1] set    KEYS[2] version    KEYS[3] who restores    ARGV[1] SADD|SREM    ARGV[2] tenant
-- returns 1 changed | 0 the set was lost
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[3])
  return 0
end
redis.call(ARGV[1], KEYS[1], ARGV[2])
redis.call('INCR', KEYS[2])
return 1
