#!lua flags=allow-oom
-- Give back calls that were counted and not used, or count those that were used beyond.
--
-- KEYS[1]     state     state of the caller, the strategy's
-- ARGV[1]     strategy  how it is counted
-- ARGV[2]     now       microseconds, for a clock of one's own; "" for the server's
-- ARGV[3]     stamp     when they were counted, microseconds
-- ARGV[4]     amount    calls to give back; below 0, calls to count, as far as there is room
-- ARGV[5]     count     how many numbers
-- ARGV[6...]  numbers   those of the rates, then the strategy's figures of when they were counted
-- returns     1

local strategies = {}
-- @include _numbers
-- @strategies
local clock = redis.call("TIME")
local now, rates, figures = tonumber(ARGV[2]) or clock[1] * 1000000 + clock[2], {}, {}
for place = 6, #ARGV do
    local list = place < 6 + ARGV[5] and rates or figures
    list[#list + 1] = tonumber(ARGV[place])
end
strategies[ARGV[1]].give(KEYS[1], now, tonumber(ARGV[3]), tonumber(ARGV[4]), rates, figures)
if ARGV[2] ~= "" then
    redis.call("EXPIRE", KEYS[1], 86400, "GT")  -- a clock of one's own may be slower than the server's
end
return 1
