-- suspended_change: add a tenant to the set of suspended tenants or remove it, and increment the
-- version of the set. Without a version the set is missing and stays missing: the next reader
-- restores it from Postgres, which has this change. A reader that is restoring the set now may have
-- read Postgres before the change, so the script revokes its token.
-- KEYS[1] set
-- KEYS[2] version
-- KEYS[3] token of the restoring reader
-- ARGV[1] SADD|SREM
-- ARGV[2] tenant
-- returns 1 changed | 0 set missing
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[3])
  return 0
end
redis.call(ARGV[1], KEYS[1], ARGV[2])
redis.call('INCR', KEYS[2])
return 1
