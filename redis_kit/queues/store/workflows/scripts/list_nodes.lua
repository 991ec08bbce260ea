#!lua flags=no-writes
-- Return nodes of a workflow in the order of their numbers.
--
-- KEYS[1]  steps   hash: number -> node
-- KEYS[2]  states  hash: number -> for how many nodes it waits, or its state and since when, ms
-- KEYS[3]  errors  hash: number -> why it failed
-- ARGV[1]  first    number
-- ARGV[2]  last     number
-- returns  number, beginning of the node, state and error of each

local steps, states, errors = unpack(KEYS)
-- @include _node_start
local reply = {}
for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local node = node_start(number)
    if node ~= "" then
        local state, error = redis.call("HGET", states, number) or "", redis.call("HGET", errors, number) or ""
        for _, part in ipairs({tostring(number), node, state, error}) do table.insert(reply, part) end
    end
end
return reply
