-- remove_last_seen: remove sessions from the last-seen set, except sessions seen again since the
-- caller read the scores.
-- KEYS[1] sorted set of sessions
-- ARGV id, score as read, …
-- returns the number of removed sessions
local n = 0
for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    n = n + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return n
