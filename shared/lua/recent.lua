-- recent: put what was viewed on the list, newest first, each property once, and keep so many. A report that comes late
-- goes to its place, and nowhere when the list knows of a later view of the property.
-- KEYS[1] recently viewed list    KEYS[2] mark of a cleared session
-- ARGV[1] life ms    ARGV[2] entries kept    ARGV[3…] property id, entry, …; of views at one time the last is in front
-- returns entries in the list | 0 the session was cleared
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end

-- when is the time of an entry, in the one form that all of them have and that sorts; '' when it cannot be read.
local function when(entry) return string.match(entry, '"viewedAt":"([^"]*)"') or '' end

local list = redis.call('LRANGE', KEYS[1], 0, -1)
for i = 3, #ARGV, 2 do
  local entry, later = ARGV[i + 1], false
  local at = when(entry)
  for j = #list, 1, -1 do
    if string.find(list[j], ARGV[i], 1, true) then
      if when(list[j]) > at then later = true else table.remove(list, j) end
    end
  end
  local place = 1
  while place <= #list and when(list[place]) > at do place = place + 1 end
  if not later then table.insert(list, place, entry) end
end

redis.call('DEL', KEYS[1])
for i = 1, math.min(#list, tonumber(ARGV[2])) do redis.call('RPUSH', KEYS[1], list[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('LLEN', KEYS[1])
