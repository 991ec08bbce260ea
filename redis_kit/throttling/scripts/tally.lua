#!lua
-- Count how many calls an identity wants in this period, and update the distribution over all identities.
--
-- KEYS[1]  tally   string: number of the period of the identity, and how many calls it wanted in it
-- KEYS[2]  demand  hash: calls wanted in a period -> number of periods; above 100 rounded to two digits
-- ARGV[1]  now     microseconds for a custom clock; "" for the server's clock
-- ARGV[2]  cost    how many calls this one counts for
-- ARGV[3]  period  microseconds
-- returns  calls that the identity wanted in this period

local tally, demand = KEYS[1], KEYS[2]
local clock = redis.call("TIME")
local now, cost, period = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2], tonumber(ARGV[2]), tonumber(ARGV[3])
local function rounded(calls)
    local step = calls <= 100 and 1 or 10 ^ (math.floor(math.log10(calls)) - 1)
    return string.format("%.0f", math.ceil(calls / step) * step)
end

-- @check_types demand
local window = string.format("%.0f", math.floor(now / period))
local stored, before = string.match(redis.call("GET", tally) or "", "^(%d+) (%d+)$")
before = stored == window and tonumber(before) or 0
local wanted = before + cost
redis.call("SET", tally, string.format("%s %.0f", window, wanted), "PX", math.ceil((period - now % period) / 1000))
if ARGV[1] ~= "" then
    redis.call("EXPIRE", tally, 86400, "GT")  -- a custom clock may be slower than the server's
end
if before == 0 or rounded(before) ~= rounded(wanted) then
    redis.call("HINCRBY", demand, rounded(wanted), 1)
    if before > 0 and redis.call("HINCRBY", demand, rounded(before), -1) <= 0 then
        redis.call("HDEL", demand, rounded(before))
    end
    redis.call("EXPIRE", demand, 604800, "NX")
end
return wanted
