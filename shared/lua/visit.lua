-- visit: note that a session was here: write what changed, renew its life, and put a search on its history.
-- A session that was cleared meanwhile must not come back: nothing is written then, nor where one is to be touched that
-- Redis has lost since, because what it was is not known here.
-- KEYS[1] session hash    KEYS[2] history list    KEYS[3] mark of a cleared session    KEYS[4…] other lists that live as long
-- ARGV[1] create 0|1    ARGV[2] life ms    ARGV[3] history entry or ''    ARGV[4] entries kept
-- ARGV[5] n    then n defaults, field, value, …, for what has no value yet or '?'    then changes, field, value, …
-- returns {1 written | 0 cleared | -1 lost, consent to telemetry as it stands, locale until now or '', currency until
-- now or ''}; the last two only when this visit changed them
local there = redis.call('EXISTS', KEYS[1]) == 1
if redis.call('EXISTS', KEYS[3]) == 1 then return {0, '', '', ''} end
if not there and ARGV[1] == '0' then return {-1, '', '', ''} end
local changes = 6 + tonumber(ARGV[5])
for i = 6, changes - 1, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 0 and redis.call('HGET', KEYS[1], ARGV[i]) == '?' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end

local new, was = {}, {}
for i = changes, #ARGV, 2 do new[ARGV[i]] = ARGV[i + 1] end
for preference, source in pairs({localePreference = 'localeSource', currencyPreference = 'currencySource'}) do
  if there and (new[preference] or new[source]) then
    local old = redis.call('HMGET', KEYS[1], preference, source)
    if old[2] == 'user-explicit' and new[source] ~= 'user-explicit' then -- chosen by the guest since this visit was read
      new[preference], new[source] = nil, nil
    elseif new[preference] and old[1] and old[1] ~= new[preference] then
      was[preference] = old[1]
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
return {1, redis.call('HGET', KEYS[1], 'consentTelemetry') or '', was.localePreference or '', was.currencyPreference or ''}
