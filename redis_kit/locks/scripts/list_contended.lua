#!lua flags=no-writes
-- List the names of one bucket with the longest waits, the longest first.
--
-- KEYS[1]  waited  zset: kind and name -> ms that callers have waited
-- KEYS[2]  waits   zset: kind and name -> number of waits
-- ARGV[1]  limit   members to return
-- returns  members, ms and numbers, alternating

local found = redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
local listed = {}
for place = 1, #found, 2 do
    listed[#listed + 1] = found[place]
    listed[#listed + 1] = found[place + 1]
    listed[#listed + 1] = redis.call("ZSCORE", KEYS[2], found[place]) or "0"
end
return listed
