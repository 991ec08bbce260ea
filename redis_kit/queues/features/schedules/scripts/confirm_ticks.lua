#!lua flags=allow-oom
-- Record what became of claimed schedules, and when to look at them again.
-- One script: whoever changed a schedule, or claimed it after the lease, is left alone.
--
-- @keys due, state
-- ARGV[1]     claim     see claim_ticks
-- ARGV[2...]  rows      name of each, when to look at it, ms; its state, "" to leave that
-- returns     how many were recorded

-- @check_types due, state
local count = 0
for at = 2, #ARGV, 3 do
    local name, when, became = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    if redis.call("ZSCORE", due, name) == ARGV[1] then
        count = count + 1
        redis.call("ZADD", due, when, name)
        if became ~= "" then
            redis.call("HSET", state, name, became)
        end
    end
end
return count
