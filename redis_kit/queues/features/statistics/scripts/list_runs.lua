#!lua flags=no-writes
-- Return the counts of attempts by task, of the latest hours.
--
-- @keys tasks, past
-- ARGV[1]  hours  how many, the present one among them
-- returns  the present hour since 1970, then of each task its name, and the blocks of these hours, "" without any

local hours = tonumber(ARGV[1])
local hour = math.floor(redis.call("TIME")[1] / 3600)

-- @include _run_counts
local reply, entries = {hour}, redis.call("HGETALL", tasks)
for at = 1, #entries, 2 do
    local task, stored = entries[at], entries[at + 1]
    local before = hours > 1 and redis.call("HGET", past, task) or ""
    reply[#reply + 1], reply[#reply + 2] = task, blocks_since(stored .. before, hour - hours + 1)
end
return reply
