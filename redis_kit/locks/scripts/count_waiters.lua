#!lua flags=no-writes
-- Count the callers that wait for some names.
--
-- KEYS[1...]  waiters  zset: token -> until when it counts as a waiter, ms on the server's clock
-- returns     how many wait for all of them

-- Nobody waits for most locks, and one call tells.
if redis.call("EXISTS", unpack(KEYS)) == 0 then return 0 end
local clock, count = redis.call("TIME"), 0
local now = string.format("(%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
for place = 1, #KEYS do
    count = count + redis.call("ZCOUNT", KEYS[place], now, "+inf")
end
return count
