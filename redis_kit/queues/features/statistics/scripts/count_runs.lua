#!lua
-- Add what a worker process counted of attempts since the last time, by task, to the present hour.
--
-- @keys tasks, past
-- ARGV[1]     hours   for which counts are kept, the present one among them
-- ARGV[2]     most    tasks; those that come after them are counted together, as ""
-- ARGV[3...]  counts  task and counts of each, as in a block
-- returns     how many tasks there are

local hours, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local hour = math.floor(redis.call("TIME")[1] / 3600)

-- @include _run_counts
local function added(counts, more)
    local sums, order, parts = {}, {}, {}
    for _, text in ipairs({counts, more}) do
        for at = 1, #text - 4, 5 do
            local what, count = struct.unpack(">BI4", text, at)
            if not sums[what] then order[#order + 1] = what end
            sums[what] = math.min((sums[what] or 0) + count, 2 ^ 32 - 1)
        end
    end
    for at, what in ipairs(order) do
        parts[at] = struct.pack(">BI4", what, sums[what])
    end
    return table.concat(parts)
end

-- @check_types tasks, past
local known = redis.call("HLEN", tasks)
for at = 3, #ARGV, 2 do
    local task, counts = ARGV[at], ARGV[at + 1]
    local stored = redis.call("HGET", tasks, task)
    if not stored and known >= most then
        task, stored = "", redis.call("HGET", tasks, "")
    elseif not stored then
        known = known + 1
    end
    local latest, before = first_block(stored or "", 1)
    if latest and latest < hour then
        redis.call("HSET", past, task, blocks_since(stored .. (redis.call("HGET", past, task) or ""), hour - hours + 1))
    end
    counts = added(latest and latest >= hour and before or "", counts)
    redis.call("HSET", tasks, task, struct.pack(">I4I2", math.max(latest or hour, hour), #counts / 5) .. counts)
end
-- Tasks that did not run for longer make room.
for _, task in ipairs(redis.call("HRANDFIELD", tasks, 3)) do
    local latest = first_block(redis.call("HGET", tasks, task), 1)
    if not latest or latest <= hour - hours then
        redis.call("HDEL", tasks, task)
        redis.call("HDEL", past, task)
    end
end
redis.call("PEXPIRE", tasks, hours * 3600 * 1000)
redis.call("PEXPIRE", past, hours * 3600 * 1000)
return known
