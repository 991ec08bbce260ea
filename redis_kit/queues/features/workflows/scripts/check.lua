#!lua flags=allow-oom
-- Return steps that are due or run and that were not looked at for a while, for a look at their jobs.
--
-- @keys meta, steps, states, due, active
-- ARGV[1]  grace   ms for which a step is left alone
-- ARGV[2]  limit   how many steps
-- returns  status, "" without a workflow; then number, state and first line of the node of each, or the whole node if
--          the step may not be in its queue

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @check_types meta, steps, states, due, active
local status = redis.call("HGET", meta, "status") or ""
local reply, size, latest = {status}, 0, string.format("%.0f", now - ARGV[1])
if status ~= "running" then
    return reply
end
for _, number in ipairs(redis.call("ZRANGEBYSCORE", active, "-inf", latest, "LIMIT", 0, ARGV[2])) do
    local node = redis.call("HGET", steps, number) or ""
    if not redis.call("ZSCORE", due, number) then node = string.match(node, "^[^\n]*") end
    size = size + #node
    if size > 1048576 and #reply > 1 then
        return reply
    end
    redis.call("ZADD", active, string.format("%.0f", now), number)
    for _, part in ipairs({number, redis.call("HGET", states, number) or "", node}) do table.insert(reply, part) end
end
return reply
