-- A node is a step, "s <group> <dependents> <JSON of its job>" and its body in further lines, or a group, "g <group>
-- <dependents> <callback>". The members of a group are in a field of their own. Numbers are joined by commas, "-" is for
-- none; a member that is a group has a "g" before its number.
-- needs  ARGV, steps, states
-- gives  read_node, store_nodes
local function read_node(number)  -- kind, group, dependents and, of a group, the callback
    return string.match(redis.call("HGET", steps, number) or "", "^(%l) (%d+) (%S+) (%S+)")
end

-- Store new nodes, given by the arguments from `first` on as number, state and node of each.
local function store_nodes(first)
    for at = first, #ARGV, 3 do
        local head, members = string.match(ARGV[at + 2], "^(g[^\n]*\n)(.*)$")
        redis.call("HSET", states, ARGV[at], ARGV[at + 1])
        redis.call("HSET", steps, ARGV[at], head or ARGV[at + 2])
        if head then redis.call("HSET", steps, "members:" .. ARGV[at], members) end
    end
end
