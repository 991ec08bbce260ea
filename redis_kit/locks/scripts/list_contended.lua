#!lua flags=no-writes
-- List what was waited for longest in one bucket, the longest first.
--
-- KEYS[1]  waited  zset: kind and name -> ms that callers waited for it
-- KEYS[2]  waits   zset: kind and name -> how many waited
-- ARGV[1]  most    members to return
-- returns  members, ms and numbers, in turns

local found = redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
local listed = {}
for place = 1, #found, 2 do
    listed[#listed + 1] = found[place]
    listed[#listed + 1] = found[place + 1]
    listed[#listed + 1] = redis.call("ZSCORE", KEYS[2], found[place]) or "0"
end
return listed
