-- Count down what a node waits for, given as its state while it waits. A step that waits for nothing is due; in a
-- group all members are counted down, steps many at a time. A group is active while any of its members is; `owner` is
-- the step whose end this is.
-- needs  steps, states, groups, due, active, now, read_node
-- gives  open_group, make_due, count_down_steps, count_down
local function open_group(group, members)
    if redis.call("HINCRBY", groups, "active:" .. group, members) == members and group ~= "0" then
        redis.call("HSET", states, group, "running " .. now)
        local _, parent = read_node(group)
        open_group(parent, 1)
    end
end

local function make_due(numbers, owner)
    local words, owned, looked = {}, {}, {}
    for at, number in ipairs(numbers) do
        words[2 * at - 1], words[2 * at] = number, "due " .. now
        owned[2 * at - 1], owned[2 * at] = owner, number
        looked[2 * at - 1], looked[2 * at] = now, number
    end
    redis.call("HSET", states, unpack(words))
    redis.call("ZADD", due, unpack(owned))
    redis.call("ZADD", active, unpack(looked))
end

local function count_down_steps(numbers, group, owner)
    local free = {}
    for at, state in ipairs(redis.call("HMGET", states, unpack(numbers))) do
        local left = tonumber(state or "")
        if left == 1 then
            free[#free + 1] = numbers[at]
        elseif left then
            redis.call("HSET", states, numbers[at], left - 1)
        end
    end
    if #free > 0 then
        open_group(group, #free)
        make_due(free, owner)
    end
end

local function count_down(number, owner)
    local left = tonumber(redis.call("HGET", states, number) or "")
    if left ~= 1 then
        if left then redis.call("HSET", states, number, left - 1) end
        return
    end
    local kind, parent = read_node(number)
    if kind == "s" then
        count_down_steps({number}, parent, owner)
        return
    end
    redis.call("HSET", states, number, "running " .. now)
    local some, members = {}, redis.call("HGET", steps, "members:" .. number) or ""
    for mark, member in string.gmatch(members, "(g?)(%d+)") do
        if mark == "g" then
            count_down(member, owner)
        else
            some[#some + 1] = member
        end
        if #some == 500 then
            count_down_steps(some, number, owner)
            some = {}
        end
    end
    if #some > 0 then count_down_steps(some, number, owner) end
end
