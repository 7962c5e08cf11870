-- push_viewed: insert viewed properties into the recently viewed list, newest first, each property
-- once, and trim the list. A late report is inserted at the position of its time, or dropped if the
-- list has a later view of the same property.
-- KEYS[1] recently viewed list
-- KEYS[2] marker of a cleared session
-- ARGV[1] TTL in ms
-- ARGV[2] maximum length
-- ARGV[3…] property id, entry, …; of views at equal times the last comes first
-- returns length of the list | 0 session cleared
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end

-- viewed_at returns the time of an entry as text, or '' if the entry has none. All times have one
-- format that sorts as text.
local function viewed_at(entry) return string.match(entry, '"viewedAt":"([^"]*)"') or '' end

local list = redis.call('LRANGE', KEYS[1], 0, -1)
for i = 3, #ARGV, 2 do
  local entry, later = ARGV[i + 1], false
  local at = viewed_at(entry)
  for j = #list, 1, -1 do
    if string.find(list[j], ARGV[i], 1, true) then
      if viewed_at(list[j]) > at then later = true else table.remove(list, j) end
    end
  end
  local place = 1
  while place <= #list and viewed_at(list[place]) > at do place = place + 1 end
  if not later then table.insert(list, place, entry) end
end

redis.call('DEL', KEYS[1])
for i = 1, math.min(#list, tonumber(ARGV[2])) do redis.call('RPUSH', KEYS[1], list[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('LLEN', KEYS[1])
