#!lua flags=allow-oom
-- Correct the cost of a call that was counted: refund unused calls, or count further ones.
--
-- KEYS[1]     state     state of the identity, in the format of the strategy
-- ARGV[1]     now       microseconds for a custom clock; "" for the server's clock
-- ARGV[2]     stamp     when the call was counted, microseconds
-- ARGV[3]     amount    calls to refund; below 0, calls to count, as far as there is room
-- ARGV[4]     count     how many numbers
-- ARGV[5...]  numbers   those of the rates, then the figures of the strategy when the call was counted
-- returns     1

-- @strategy
local clock = redis.call("TIME")
local now, rates, figures = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2], {}, {}
for index = 5, #ARGV do
    local list = index < 5 + ARGV[4] and rates or figures
    list[#list + 1] = tonumber(ARGV[index])
end
give(KEYS[1], now, tonumber(ARGV[2]), tonumber(ARGV[3]), rates, figures)
if ARGV[1] ~= "" then
    redis.call("EXPIRE", KEYS[1], 86400, "GT")  -- a custom clock may be slower than the server's
end
return 1
