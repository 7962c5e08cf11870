-- suspended_restore: put the suspended set back after it was lost, unless somebody has done so.
-- The version begins at the server's time in µs: above every version there was, so that no copy in memory passes for right.
-- KEYS[1] set    KEYS[2] version    ARGV[1…] tenants
-- returns the version that stands now
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  for _, tenant in ipairs(ARGV) do redis.call('SADD', KEYS[1], tenant) end
  local t = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', t[1] * 1000000 + t[2]))
end
return redis.call('GET', KEYS[2])
