#!lua flags=allow-oom
-- Record that a step succeeded or failed for good, once, and make due what waited for it. Steps that it added run before
-- these. After a failure nothing follows but the callback of its group.
-- One script: an end that is recorded and not counted would stop the workflow.
--
-- @keys meta, steps, states, groups, due, active, values, errors, ended
-- ARGV[1]     number    of the step
-- ARGV[2]     outcome   "successful" or "failed"
-- ARGV[3]     text      its result, "" for none, or its error
-- ARGV[4]     expected  state of the step, "" for any
-- ARGV[5]     ttl_ms    to store a workflow that succeeded
-- ARGV[6]     failed    ms to store a workflow that failed
-- ARGV[7]     added     how many steps it added
-- ARGV[8...]  nodes     number, state and node of each, first of the group of these
-- returns     0 there is no workflow; 1 recorded, now or before: number and node of steps that are due since; 2
--             ignored, as the step has ended otherwise, or is not in that state

local number, outcome, text, expected, ttl_ms, failed_ttl_ms, added, first = unpack(ARGV, 1, 8)
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _count_down
-- @include _end_workflow
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active, values, errors, ended
local status, state = redis.call("HGET", meta, "status"), redis.call("HGET", states, number) or ""
local word, since = string.match(state, "^(%l+) (%d+)")
if not status then
    return {0}
elseif word == outcome then
    return due_page(number, {1})
elseif status ~= "running" or word ~= "running" and word ~= "due" or expected ~= "" and expected ~= state then
    return {2}
end

local function count_down_all(dependents)
    for dependent in string.gmatch(dependents, "%d+") do
        count_down(dependent, number)
    end
end

local function has_failures(key, field)
    return tonumber(redis.call("HGET", key, field) or 0) > 0
end

-- A member of a group has ended. With the last one the group ends: its callback is due or, without failures, what follows
-- it. With the outermost group the workflow ends.
local function end_member(group)
    if redis.call("HINCRBY", groups, "active:" .. group, -1) > 0 then
        return
    end
    if group == "0" then
        local failed = has_failures(meta, "failed")
        end_workflow(failed and "failed" or "successful", failed and failed_ttl_ms or ttl_ms)
        return
    end
    local failed = has_failures(groups, "failed:" .. group)
    local _, parent, dependents, callback = read_node(group)
    redis.call("HSET", states, group, (failed and "failed " or "successful ") .. now)
    if callback ~= "-" then
        count_down_all(callback)
    elseif not failed then
        count_down_all(dependents)
    end
    end_member(parent)
end

local _, parent, dependents = read_node(number)
redis.call("HSET", states, number, outcome .. " " .. now .. " " .. since)
redis.call("ZREM", active, number)
redis.call("ZREM", due, number)
if outcome == "failed" then
    redis.call("HSET", errors, number, text)
    count_failure(parent, 1)
    end_member(parent)
    return due_page(number, {1})
end
redis.call("HINCRBY", meta, "done", 1)
if text ~= "" then redis.call("HSET", values, number, text) end
if added ~= "0" then
    redis.call("HINCRBY", meta, "steps", added)
    store_nodes(8)
    redis.call("HSET", steps, first, "g " .. parent .. " " .. dependents .. " -\n")
    local node = string.gsub(redis.call("HGET", steps, number), "^(%l %d+) %S+", "%1 " .. first, 1)
    redis.call("HSET", steps, number, node)
    dependents = first
end
count_down_all(dependents)
end_member(parent)
return due_page(number, {1})
