-- A node is a step, "s <group> <dependents> <id> <queue> <priority> <due> <backend> <lane>" and its body in further
-- lines, or a group, "g <group> <dependents> <members> <callback>". Numbers are joined by commas; "-" is for none.
-- needs  steps
-- gives  read_node
local function read_node(number)
    return string.match(redis.call("HGET", steps, number) or "", "^(%l) (%d+) (%S+) (%S+) (%S+)")
end
