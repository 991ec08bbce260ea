#!lua flags=allow-oom
-- Record that a step failed for good. Steps that depend on it do not run, except the callback of its group.
-- One script: a failure that is recorded and not counted in its groups would stop the workflow.
--
-- @keys meta, steps, states, groups, due, active, values, errors, ended
-- ARGV[1]  number    of the step
-- ARGV[2]  error
-- ARGV[3]  expected  state of the step, "" for any
-- ARGV[4]  failed    ms to store a workflow that failed
-- returns  0 there is no workflow; 1 recorded, now or before: number and node of steps that are due since; 2 ignored,
--          as the step has ended, or is not in that state

local number, expected, failed_ttl_ms = ARGV[1], ARGV[3], ARGV[4]
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _release
-- @include _conclude
-- @include _end_member
-- @include _count_failure
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active, values, errors, ended
local status, state = redis.call("HGET", meta, "status"), redis.call("HGET", states, number) or ""
local word, since = string.match(state, "^(%l+) (%d+)")
if not status then
    return {0}
elseif word == "failed" then
    return due_page(number, {1})
elseif status ~= "running" or word ~= "running" and word ~= "due" or expected ~= "" and expected ~= state then
    return {2}
end
local _, parent = read_node(number)
redis.call("HSET", states, number, "failed " .. now .. " " .. since)
redis.call("HSET", errors, number, ARGV[2])
redis.call("ZREM", active, number)
redis.call("ZREM", due, number)
count_failure(parent, 1)
end_member(parent, number, failed_ttl_ms, failed_ttl_ms)
return due_page(number, {1})
