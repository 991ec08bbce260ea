-- A node is a step, "s <group> <dependents> <JSON of its job>" and its body in further lines, or a group, "g <group>
-- <dependents> <callback>". The members of a group are in a field of their own. Numbers are joined by commas, "-" is for
-- none; a member that is a group has a "g" before its number.
-- needs  ARGV, meta, steps, states, groups
-- gives  read_node, store_nodes, count_failure
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

-- Count a failed step in its groups, up to the first one with a callback, which takes care of the failure.
local function count_failure(group, by)
    redis.call("HINCRBY", meta, "failed", by)
    local callback = "-"
    while group ~= "0" and callback == "-" do
        local _, parent, _, its_callback = read_node(group)
        redis.call("HINCRBY", groups, "failed:" .. group, by)
        group, callback = parent, its_callback
    end
end
