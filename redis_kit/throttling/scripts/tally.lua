#!lua
-- Count a call among what its caller wants in this period, and keep the distribution of that over all callers.
--
-- KEYS[1]  tally   string: number of the caller's period and how many calls it wanted in it
-- KEYS[2]  demand  hash: calls wanted in a period -> number of callers' periods; above 100 by two digits
-- ARGV[1]  now     microseconds, for a clock of one's own; "" for the server's
-- ARGV[2]  cost    how many calls this one counts for
-- ARGV[3]  period  microseconds
-- returns  calls that the caller wanted in this period

local clock = redis.call("TIME")
local now, cost, period = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2], tonumber(ARGV[2]), tonumber(ARGV[3])
local function rounded(calls)
    local step = calls <= 100 and 1 or 10 ^ (math.floor(math.log10(calls)) - 1)
    return string.format("%.0f", math.ceil(calls / step) * step)
end

-- @check_types demand
local window = string.format("%.0f", math.floor(now / period))
local kept, before = string.match(redis.call("GET", KEYS[1]) or "", "^(%d+) (%d+)$")
before = kept == window and tonumber(before) or 0
local wanted = before + cost
redis.call("SET", KEYS[1], string.format("%s %.0f", window, wanted), "PX", math.ceil((period - now % period) / 1000))
if ARGV[1] ~= "" then
    redis.call("EXPIRE", KEYS[1], 86400, "GT")  -- a clock of one's own may be slower than the server's
end
if before == 0 or rounded(before) ~= rounded(wanted) then
    redis.call("HINCRBY", KEYS[2], rounded(wanted), 1)
    if before > 0 and redis.call("HINCRBY", KEYS[2], rounded(before), -1) <= 0 then
        redis.call("HDEL", KEYS[2], rounded(before))
    end
    redis.call("EXPIRE", KEYS[2], 604800, "NX")
end
return wanted
