#!lua flags=no-writes
-- Return nodes of a workflow in the order of their numbers.
--
-- @keys steps, states, errors
-- ARGV[1]  first    number
-- ARGV[2]  last     number
-- returns  number, beginning of the node, state and error of each

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
