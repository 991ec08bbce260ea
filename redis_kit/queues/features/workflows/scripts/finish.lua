#!lua flags=allow-oom
-- Record that a step succeeded, once, and make due what waited for it. Steps that it added run before these.
-- One script: a step that is recorded as done and whose dependents were not counted down would stop its workflow.
--
-- @keys meta, steps, states, groups, due, active, values, errors, ended
-- ARGV[1]     number   of the step
-- ARGV[2]     value    its result; "" for none
-- ARGV[3]     ttl_ms   to store a workflow that succeeded
-- ARGV[4]     failed   ms to store a workflow that failed
-- ARGV[5]     added    how many steps it added
-- ARGV[6]     first    number of the group of these
-- ARGV[7...]  nodes    number, state and node of each
-- returns     0 there is no workflow; 1 recorded, now or before: number and node of steps that are due since; 2
--             ignored, as the step was cancelled or has failed

local number, ttl_ms, failed_ttl_ms = ARGV[1], ARGV[3], ARGV[4]
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _release
-- @include _conclude
-- @include _end_member
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active, values, errors, ended
local status = redis.call("HGET", meta, "status")
local word, since = string.match(redis.call("HGET", states, number) or "", "^(%l+) (%d+)")
if not status then
    return {0}
elseif word == "successful" then
    return due_page(number, {1})
elseif status ~= "running" or word ~= "running" and word ~= "due" then
    return {2}
end
local _, parent, dependents = read_node(number)
redis.call("HSET", states, number, "successful " .. now .. " " .. since)
redis.call("ZREM", active, number)
redis.call("ZREM", due, number)
redis.call("HINCRBY", meta, "done", 1)
if ARGV[2] ~= "" then redis.call("HSET", values, number, ARGV[2]) end
if ARGV[5] ~= "0" then
    redis.call("HINCRBY", meta, "steps", ARGV[5])
    for at = 7, #ARGV, 3 do
        local head, members = string.match(ARGV[at + 2], "^(g[^\n]*\n)(.*)$")
        if ARGV[at] == ARGV[6] then head = "g " .. parent .. " " .. dependents .. " -\n" end
        redis.call("HSET", states, ARGV[at], ARGV[at + 1])
        redis.call("HSET", steps, ARGV[at], head or ARGV[at + 2])
        if head then redis.call("HSET", steps, "members:" .. ARGV[at], members) end
    end
    local node = string.gsub(redis.call("HGET", steps, number), "^(%l %d+) %S+", "%1 " .. ARGV[6], 1)
    redis.call("HSET", steps, number, node)
    dependents = ARGV[6]
end
for dependent in string.gmatch(dependents, "%d+") do
    count_down(dependent, number)
end
end_member(parent, number, ttl_ms, failed_ttl_ms)
return due_page(number, {1})
