-- update_session: after a request, write the changed fields of a session, renew the TTLs, and push
-- a search onto the history. The script writes nothing if the session was cleared meanwhile,
-- because a clear is final, or if an existing session is missing in Redis, because its other fields
-- are unknown here.
-- KEYS[1] session hash
-- KEYS[2] history list
-- KEYS[3] marker of a cleared session
-- KEYS[4…] other lists with the same TTL
-- ARGV[1] create 0|1
-- ARGV[2] TTL in ms
-- ARGV[3] history entry or ''
-- ARGV[4] maximum length of the history
-- ARGV[5] n
-- ARGV[6…] n arguments with defaults (field, value, …) for fields without a value or with '?', then
--         changes (field, value, …)
-- returns {1 written | 0 cleared | -1 missing, telemetry consent, previous locale or '', previous
--         currency or ''}; the last two are set only if this request changed them
local exists = redis.call('EXISTS', KEYS[1]) == 1
if redis.call('EXISTS', KEYS[3]) == 1 then return {0, '', '', ''} end
if not exists and ARGV[1] == '0' then return {-1, '', '', ''} end
local changes = 6 + tonumber(ARGV[5])
for i = 6, changes - 1, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 0 and redis.call('HGET', KEYS[1], ARGV[i]) == '?' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end

local new, previous = {}, {}
for i = changes, #ARGV, 2 do new[ARGV[i]] = ARGV[i + 1] end
for preference, source in pairs({localePreference = 'localeSource', currencyPreference = 'currencySource'}) do
  if exists and (new[preference] or new[source]) then
    local old = redis.call('HMGET', KEYS[1], preference, source)
    if old[2] == 'user-explicit' and new[source] ~= 'user-explicit' then
      -- the guest chose the value after this request read the session
      new[preference], new[source] = nil, nil
    elseif new[preference] and old[1] and old[1] ~= new[preference] then
      previous[preference] = old[1]
    end
  end
end
for field, value in pairs(new) do redis.call('HSET', KEYS[1], field, value) end

if ARGV[3] ~= '' then
  redis.call('LPUSH', KEYS[2], ARGV[3])
  redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
end
for i, key in ipairs(KEYS) do
  if i ~= 3 then redis.call('PEXPIRE', key, ARGV[2]) end
end
return {1, redis.call('HGET', KEYS[1], 'consentTelemetry') or '', previous.localePreference or '', previous.currencyPreference or ''}
