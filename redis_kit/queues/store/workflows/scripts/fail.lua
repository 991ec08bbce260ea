#!lua flags=allow-oom
-- Record that a step failed for good. Steps that depend on it do not run, except the callback of its group.
-- One script: a failure that is recorded and not counted in its groups would stop the workflow.
--
-- KEYS[1]  meta      hash: name, status, ...
-- KEYS[2]  steps     hash: number -> node
-- KEYS[3]  states    hash: number -> for how many nodes it waits, or its state and since when, ms
-- KEYS[4]  groups    hash: active:<number> or failed:<number> -> how many members
-- KEYS[5]  due       zset: number of a step that may not be in its queue -> the step that made it due
-- KEYS[6]  active    zset: number of a step that is due or runs -> when it was last looked at, ms
-- KEYS[7]  values    hash: number -> result
-- KEYS[8]  errors    hash: number -> why it failed
-- KEYS[9]  ended     list: an element for each caller that waits for the end
-- ARGV[1]  number    of the step
-- ARGV[2]  error
-- ARGV[3]  expected  state of the step, "" for any
-- ARGV[4]  failed    ms to store a workflow that failed
-- returns  0 there is no workflow; 1 recorded, now or before: number and node of steps that are due since; 2 ignored,
--          as the step has ended, or is not in that state

local meta, steps, states, groups, due, active, values, errors, ended = unpack(KEYS)
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
