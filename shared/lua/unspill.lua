-- unspill: remove rows from the oldest end of the spill, each once. Whoever is second finds nothing, and does not search
-- the whole list for it.
-- KEYS[1] spill list, newest first    ARGV[1] how far from the oldest end to look    ARGV[2…] rows
-- returns how many were removed
local removed = 0
for i = 2, #ARGV do
  if redis.call('LPOS', KEYS[1], ARGV[i], 'RANK', -1, 'MAXLEN', ARGV[1]) then
    removed = removed + redis.call('LREM', KEYS[1], -1, ARGV[i])
  end
end
return removed
