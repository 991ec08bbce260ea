#!lua
-- Store nodes of a new workflow. With the last of them it starts; until then they expire.
--
-- @keys meta, steps, states, groups, due, active
-- ARGV[1]     name
-- ARGV[2]     count    of steps, 0 if more nodes follow
-- ARGV[3]     ttl_ms   for nodes of a workflow that never starts
-- ARGV[4...]  nodes    number, state and node of each, of 500 at most
-- returns     number and node of steps that are due

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _count_down
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active
if redis.call("EXISTS", meta) == 0 then
    store_nodes(4)
    if ARGV[2] == "0" then
        for _, key in ipairs({steps, states}) do redis.call("PEXPIRE", key, ARGV[3]) end
        return {}
    end
    for _, key in ipairs({steps, states}) do redis.call("PERSIST", key) end
    redis.call("HSET", meta, "name", ARGV[1], "status", "running", "created", now, "steps", ARGV[2], "next", ARGV[#ARGV - 2] + 1)
    count_down("0", "0")
end
return due_page("0", {})
