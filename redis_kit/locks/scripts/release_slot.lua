#!lua flags=allow-oom
-- Release slots on all levels, and wake as many waiters of each. If the token itself waits, it stops waiting.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[2...]  levels   six keys of each, the outermost first: holders, about, weights, limits, waiters, signal
-- ARGV[1]     token    of the lease
-- ARGV[2...]  members  kind and name of each level
-- returns     1 if they were released, 0 if this token holds none

local token = ARGV[1]
-- @include _remove_lease

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

local held
for at = 2, #KEYS, 6 do
    local ends, count = tonumber(redis.call("ZSCORE", KEYS[at], token)), redis.call("ZCARD", KEYS[at])
    held = ends ~= nil
    if held and count > 1 then -- a single lease is live, since the key ends with it
        local clock = redis.call("TIME")
        held = ends > clock[1] * 1000 + clock[2] / 1000
    end
    local waited_for = redis.call("EXISTS", KEYS[at + 4]) == 1
    local slots = waited_for and tonumber(redis.call("HGET", KEYS[at + 2], token) or 1)
    if held then
        remove_lease(count, KEYS[1], ARGV[(at + 10) / 6], unpack(KEYS, at, at + 3))
    end
    if waited_for then
        wake(KEYS[at + 4], KEYS[at + 5], held and slots or 0)
    end
end
return held and 1 or 0
