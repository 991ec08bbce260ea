#!lua flags=allow-oom
-- Cancel a workflow: no step begins any more. Steps that are due or run are cancelled some at a time, so it is called
-- until it returns none.
--
-- @keys meta, steps, states, groups, due, active, values, errors, ended
-- ARGV[1]  failed  ms to store the workflow
-- ARGV[2]  error   of the steps that are due or run
-- ARGV[3]  limit   how many of these
-- ARGV[4]  begins  1 to cancel it, 0 only to go on if it was cancelled
-- returns  0 there is no workflow; 1 cancelled, now or before: the first line of each of some steps; 2 it has ended

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _end_workflow
-- @check_types meta, steps, states, groups, due, active, values, errors, ended
local status = redis.call("HGET", meta, "status")
if not status then
    return {0}
elseif status ~= "cancelled" and (status ~= "running" or ARGV[4] == "0") then
    return {2}
end

local function close_group(group)
    if redis.call("HINCRBY", groups, "active:" .. group, -1) == 0 and group ~= "0" then
        local _, parent = read_node(group)
        close_group(parent)
    end
end
local reply = {1}
for _, number in ipairs(redis.call("ZRANGE", active, 0, ARGV[3] - 1)) do
    local _, parent = read_node(number)
    redis.call("HSET", states, number, "cancelled " .. now)
    redis.call("HSET", errors, number, ARGV[2])
    redis.call("ZREM", active, number)
    redis.call("ZREM", due, number)
    count_failure(parent, 1)
    close_group(parent)
    table.insert(reply, string.match(redis.call("HGET", steps, number), "^[^\n]*"))
end
if status == "running" or #reply > 1 then
    end_workflow("cancelled", ARGV[1])
end
return reply
