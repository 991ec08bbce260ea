#!lua flags=allow-oom
-- Release slots on all levels, and wake the next waiters of each. If the token itself waits, it stops waiting.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]     lease    string, until the lease ends
-- KEYS[3...]  levels   four keys of each, the outermost first: holders, limits, waiters, signal; if it is fair, of its only
--                      level: holders, limits, waiters, limit, queue, tickets, all as in acquire_slot and acquire_fair_slot
-- ARGV[1...]  levels   of each "<token> <limit>" with the weight, if it is not 1, as among the holders; kind and name.
--                      Then the weight, if it is not 1 or "1" follows: the lease may have been released before, or not
--                      acquired, so that it does not count as lost
-- returns     1 if they were released, 0 if this token holds none
--
-- The lists of tickets are data here, not keys: each has the tag of these keys.

local is_fair = #KEYS == 8
local levels = is_fair and 1 or (#KEYS - 2) / 4
local held, weight, unsure = false, ARGV[2 * levels + 1], ARGV[2 * levels + 2]
local _, _, waiters, limit, queue, tickets = unpack(KEYS, 3) -- if it is fair
local has_queue = is_fair and redis.call("EXISTS", queue) == 1
if has_queue then -- a key of a wrong type is refused before the first write
    redis.call("ZCARD", waiters)
    redis.call("ZCARD", queue)
    redis.call("HLEN", tickets)
end
for level = 1, levels do
    local slots, member = ARGV[2 * level - 1], ARGV[2 * level]
    local holders, limits, waiters, signal = unpack(KEYS, 4 * level - 1, 4 * level + 2)
    held = redis.call("ZREM", holders, slots) == 1
    if held and weight then
        if tonumber(redis.call("ZINCRBY", holders, 1 - weight, "extra")) <= 0 then
            redis.call("ZREM", holders, "extra")
        end
    end
    local found = redis.call("EXISTS", holders, limits, waiters)
    local others = found > 0 and redis.call("EXISTS", holders) or 0
    if held and others == 0 then
        redis.call("ZREM", KEYS[1], member)
    end
    if found > others and others == 0 then
        redis.call("DEL", limits)
    end
    if not is_fair and found > others and redis.call("EXISTS", waiters) == 1 then
        local free = held and tonumber(weight or 1) or 0
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
-- Now: a key of a wrong type leaves the lease as it is.
held = redis.call("DEL", KEYS[2]) == 1 and held
if not held and not unsure then
-- @include _statistics
    count_in_history(KEYS[1], 0, 0, 0, 0, 1)
end
if has_queue then
    local holders, limits = unpack(KEYS, 3)
    local clock = redis.call("TIME")
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    local token, stated = string.match(ARGV[1], "^(%w+) (%d+)")
-- @include _used_slots
-- @include _tickets
    local gone = redis.call("ZRANGEBYSCORE", waiters, "-inf", now, "LIMIT", 0, 200)
    gone[#gone + 1] = token
    remove_tickets(gone)
    local used, _, _, first = used_slots(holders)
    wake_tickets(used, (limit_in_force(first, false, limits, limit, tonumber(stated))))
end
return held and 1 or 0
