#!lua flags=allow-oom
-- Begin a step, and return the results that it is called with. A failed step begins again if its job was retried.
-- One script: between the look at the state and its change, the workflow could be cancelled.
--
-- @keys meta, steps, states, groups, due, active, values, errors
-- ARGV[1]     number   of the step
-- ARGV[2]     most     bytes of results
-- ARGV[3]     group    whose failures are wanted; "" for none
-- ARGV[4...]  numbers  of the steps whose results are wanted
-- returns     0 there is no workflow or step; 1 begun, 2 begun again though it had failed: the results, then number,
--             beginning and error of each failure; 3 it has ended: its result, then number and node of the steps that
--             are due since; 4 it was cancelled; 5 it is not due; 6 there are too many bytes

local number = ARGV[1]
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _node_start
-- @include _count_down
-- @include _reopen
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active, values, errors
local status, state = redis.call("HGET", meta, "status"), redis.call("HGET", states, number)
if not status or not state then
    return {0}
end
local word = string.match(state, "^%l+")
if word == "successful" then
    return due_page(number, {3, redis.call("HGET", values, number) or ""})
elseif status == "cancelled" or word == "cancelled" then
    return {4}
elseif not word then
    return {5}
end
local size, reply = 0, {word == "failed" and 2 or 1}
for at = 4, #ARGV do
    local value = redis.call("HGET", values, ARGV[at]) or ""
    size = size + #value
    if size > tonumber(ARGV[2]) then
        return {6, size}
    end
    table.insert(reply, value)
end

local function is_inside(node, group)
    while node and node ~= "0" and node ~= group do
        node = select(2, read_node(node))
    end
    return node == group
end
local failures = ARGV[3] ~= "" and redis.call("HGETALL", errors) or {}
for at = 1, #failures, 2 do
    if is_inside(failures[at], ARGV[3]) and #reply < 3 * 1000 + #ARGV then
        for _, part in ipairs({failures[at], node_start(failures[at]), failures[at + 1]}) do table.insert(reply, part) end
    end
end
if word == "failed" then
    reopen(number)
end
redis.call("HSET", states, number, "running " .. now)
redis.call("ZREM", due, number)
redis.call("ZADD", active, now, number)
return reply
