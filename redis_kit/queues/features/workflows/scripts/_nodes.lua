-- A node is a step, "s <group> <dependents> <id> <queue> <priority> <due> <backend> <lane>" and its body in further
-- lines, or a group, "g <group> <dependents> <callback>". The members of a group are in a field of their own. Numbers
-- are joined by commas, "-" is for none; a member that is a group has a "g" before its number.
-- needs  steps
-- gives  read_node
local function read_node(number)  -- kind, group, dependents and, of a group, the callback
    return string.match(redis.call("HGET", steps, number) or "", "^(%l) (%d+) (%S+) (%S+)")
end
