#!lua
-- Set what a limit allows, in place of what the code says, or go back to that. The next claim looks at all that waits.
--
-- @keys limits, parked, signal, running, lanes
-- ARGV[1]  name     of the limit
-- ARGV[2]  allowed  "<jobs that may run> <us between two starts> <as it was written>"; - to go back to the code
-- returns  1 when that is a change, else 0

local field, allowed = "set " .. ARGV[1], ARGV[2]

-- @include redis_kit.queues.engine:_wake
-- @include redis_kit.queues.engine:_features
-- @check_types limits, parked, signal, running, lanes
-- The jobs that run already count, too, if they are not too many.
local function count_running()
    for _, member in ipairs(redis.call("ZRANGE", running, 0, 4999)) do
        local id = string.match(member, "^[^/]+/[^/]+/[^/]+/(.*)$") or ""
        local lane = string.match(redis.call("HGET", lanes, id) or "", "^%S+ (.*)$")
        for name in string.gmatch(lane or "", "%S+") do
            redis.call("ZADD", parked, 0, "run\n" .. name .. "\n" .. id)
        end
    end
end
if (redis.call("HGET", limits, field) or "-") == allowed then
    return 0
end
if allowed == "-" then
    redis.call("HDEL", limits, field)
else
    redis.call("HSET", limits, field, allowed)
    redis.call("ZADD", parked, 0, "rule\n" .. ARGV[1])
    use_feature(64)
    count_running()
end
if #redis.call("ZRANGEBYLEX", parked, "[turn\n", "(turn\11", "LIMIT", 0, 1) > 0 then
    redis.call("ZADD", parked, 0, "todo\nfrom ")
    wake()
end
return 1
