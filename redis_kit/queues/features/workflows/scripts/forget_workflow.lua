#!lua flags=allow-oom
-- Take a workflow off the list that does not exist. One that was just listed may be about to start.
--
-- @keys listed, checked
-- ARGV[1]  id
-- ARGV[2]  age      ms since it was listed
-- returns  1 when it is not in the lists any more, else 0

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @check_types listed, checked
if now - (redis.call("ZSCORE", listed, ARGV[1]) or 0) < tonumber(ARGV[2]) then
    return 0
end
redis.call("ZREM", listed, ARGV[1])
redis.call("ZREM", checked, ARGV[1])
return 1
