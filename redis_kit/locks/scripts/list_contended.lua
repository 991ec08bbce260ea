#!lua flags=no-writes
-- List the names of one bucket with the longest waits, the longest first.
--
-- KEYS[1]  waited  zset: kind and name -> ms that callers have waited
-- KEYS[2]  waits   zset: kind and name -> number of waits
-- ARGV[1]  limit   members to return
-- returns  members, ms and numbers, alternating

local longest = redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
local listed = {}
for place = 1, #longest, 2 do
    listed[#listed + 1] = longest[place]
    listed[#listed + 1] = longest[place + 1]
    listed[#listed + 1] = redis.call("ZSCORE", KEYS[2], longest[place]) or "0"
end
return listed
