#!lua flags=allow-oom
-- Release slots on all levels, and wake as many waiters of each. If the token itself waits, it stops waiting.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]     lease    string "<limits> <weight> ...", until the lease ends
-- KEYS[3...]  levels   four keys of each, the outermost first: holders, limits, waiters, signal
-- ARGV[1]     token    of the lease
-- ARGV[2...]  members  kind and name of each level
-- returns     1 if they were released, 0 if this token holds none

local token = ARGV[1]
-- @include _remove_slots

local function wake(waiters, signal, slots)
    redis.call("ZREM", waiters, token)
    local waiting = redis.call("ZCARD", waiters)
    for _ = 1, math.min(slots, waiting - redis.call("LLEN", signal), 200) do
        redis.call("RPUSH", signal, "1")
    end
    if waiting > 0 then
        redis.call("PEXPIRE", signal, 1000)
    end
end

local limits, weight = string.match(redis.call("GET", KEYS[2]) or "", "^(%S+) (%d+)")
local next_limit, held = #ARGV > 2 and limits and string.gmatch(limits, "%d+"), false
for at = 3, #KEYS, 4 do
    local holders, waiters = KEYS[at], KEYS[at + 2]
    held = remove_slots(holders, next_limit and next_limit() or limits, weight)
    local found = redis.call("EXISTS", holders, KEYS[at + 1], waiters)
    local others = found > 0 and redis.call("EXISTS", holders) or 0
    if held and others == 0 then
        redis.call("ZREM", KEYS[1], ARGV[(at + 5) / 4])
    end
    if found > others then
        if others == 0 then
            redis.call("DEL", KEYS[at + 1])
        end
        if redis.call("EXISTS", waiters) == 1 then
            wake(waiters, KEYS[at + 3], held and tonumber(weight) or 0)
        end
    end
end
if limits then redis.call("DEL", KEYS[2]) end  -- last: a key of a wrong type leaves the lease as it is
return held and 1 or 0
