-- Count down what a node waits for, given as its state while it waits. A step that waits for nothing is due; in a group
-- all members are counted down. A group is active while any of its members is; `owner` is the step whose end this is.
-- needs  states, groups, due, active, now, read_node
-- gives  open_group, make_due, count_down
local function open_group(group)
    if redis.call("HINCRBY", groups, "active:" .. group, 1) == 1 and group ~= "0" then
        redis.call("HSET", states, group, "running " .. now)
        local _, parent = read_node(group)
        open_group(parent)
    end
end

local function make_due(number, owner)
    redis.call("HSET", states, number, "due " .. now)
    redis.call("ZADD", due, owner, number)
    redis.call("ZADD", active, now, number)
end

local function count_down(number, owner)
    local left = tonumber(redis.call("HGET", states, number) or "")
    if not left then
        return
    elseif left > 1 then
        redis.call("HSET", states, number, left - 1)
        return
    end
    local kind, parent, _, members = read_node(number)
    if kind == "s" then
        open_group(parent)
        make_due(number, owner)
        return
    end
    redis.call("HSET", states, number, "running " .. now)
    for member in string.gmatch(members or "", "%d+") do
        count_down(member, owner)
    end
end
