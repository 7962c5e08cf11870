-- keep: put an answer in the place of the claim under which it was worked out, if the claim is still ours: whoever lost
-- it took too long, or the session was cleared, and then the answer must not stay behind.
-- KEYS[1] key    ARGV[1] claim    ARGV[2] answer    ARGV[3] its life ms
-- returns 1 kept | 0 the claim was lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
