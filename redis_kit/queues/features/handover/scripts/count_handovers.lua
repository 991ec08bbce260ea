#!lua flags=allow-oom
-- Count jobs that were handed over to another system, and those that it did not take.
--
-- @keys handovers
-- ARGV[1]  sent       how many it took
-- ARGV[2]  failed     how many times it did not take one
-- ARGV[3]  error      the last of these
-- ARGV[4]  to         the sink of that system
-- ARGV[5]  ttl_ms     to store it
-- returns  1

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
for at, name in ipairs({"sent", "failed"}) do
    if ARGV[at] ~= "0" then
        redis.call("HINCRBY", handovers, name, ARGV[at])
        redis.call("HSET", handovers, name .. "_at", now)
    end
end
if ARGV[2] ~= "0" then
    redis.call("HSET", handovers, "error", ARGV[3])
end
redis.call("HSET", handovers, "to", ARGV[4])
redis.call("PEXPIRE", handovers, ARGV[5])
return 1
