#!lua
-- Leave an order for a worker, which takes it with its next beat.
--
-- KEYS[1]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  orders   hash: worker -> what it is to do; worker/until -> when that is void, ms on the server's clock
-- ARGV[1]  worker
-- ARGV[2]  order    quiet, work or stop
-- ARGV[3]  keep     ms after which an order that nobody took is void
-- returns  1 when it was left, 0 when there is no such worker

redis.call("HLEN", KEYS[2])
if not redis.call("ZSCORE", KEYS[1], ARGV[1]) then
    return 0
end
local clock = redis.call("TIME")
local void = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[3])
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2], ARGV[1] .. "/until", void)
redis.call("PEXPIRE", KEYS[2], ARGV[3])
return 1
