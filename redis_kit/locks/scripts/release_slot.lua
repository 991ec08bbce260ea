#!lua flags=allow-oom
-- Release slots on all levels, and wake as many waiters of each. If the token itself waits, it stops waiting.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]     lease    string, until the lease ends
-- KEYS[3...]  levels   four keys of each, the outermost first: holders, limits, waiters, signal
-- ARGV[1...]  levels   of each "<token> <limit>" with the weight, if it is not 1, as among the holders; kind and name.
--                      Then the weight, if it is not 1 or "1" follows: the lease may have been released before, or not
--                      acquired, so that it does not count as lost
-- returns     1 if they were released, 0 if this token holds none

local held, weight = false, ARGV[#KEYS / 2]
for at = 3, #KEYS, 4 do
    local holders, waiters, slots = KEYS[at], KEYS[at + 2], ARGV[(at - 1) / 2]
    held = redis.call("ZREM", holders, slots) == 1
    if held and weight then
        if tonumber(redis.call("ZINCRBY", holders, 1 - weight, "extra")) <= 0 then
            redis.call("ZREM", holders, "extra")
        end
    end
    local found = redis.call("EXISTS", holders, KEYS[at + 1], waiters)
    local others = found > 0 and redis.call("EXISTS", holders) or 0
    if held and others == 0 then
        redis.call("ZREM", KEYS[1], ARGV[(at + 1) / 2])
    end
    if found > others and others == 0 then
        redis.call("DEL", KEYS[at + 1])
    end
    if found > others and redis.call("EXISTS", waiters) == 1 then
        local signal, free = KEYS[at + 3], held and tonumber(weight or 1) or 0
        redis.call("ZREM", waiters, string.match(slots, "^%w+"))
        local waiting = redis.call("ZCARD", waiters)
        for _ = 1, math.min(free, waiting - redis.call("LLEN", signal), 200) do
            redis.call("RPUSH", signal, "1")
        end
        if waiting > 0 then
            redis.call("PEXPIRE", signal, 1000)
        end
    end
end
-- Last: a key of a wrong type leaves the lease as it is.
held = redis.call("DEL", KEYS[2]) == 1 and held
if not held and not ARGV[#KEYS / 2 + 1] then
-- @include _statistics
    count_in_history(KEYS[1], 0, 0, 0, 0, 1)
end
return held and 1 or 0
