#!lua flags=allow-oom
-- Take workflows that are to be looked at. They are to be looked at again later, unless they are removed.
--
-- @keys checked
-- ARGV[1]  limit    how many
-- ARGV[2]  again    ms until the next look
-- returns  their ids

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ids = redis.call("ZRANGEBYSCORE", checked, "-inf", string.format("%.0f", now), "LIMIT", 0, ARGV[1])
for _, id in ipairs(ids) do
    redis.call("ZADD", checked, string.format("%.0f", now + ARGV[2]), id)
end
return ids
