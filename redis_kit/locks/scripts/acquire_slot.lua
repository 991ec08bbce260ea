#!lua
-- Acquire slots of a semaphore and of the ones around it, or none; again if this very attempt has them.
--
-- KEYS[1]     fence    string: the last fence of this bucket
-- KEYS[2]     live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[3...]  levels   six keys of each, the outermost first: holders, zset token -> when its lease ends; about, hash
--                      token -> "<fence> <since> <ttl> <weight> <who>"; weights, hash token -> weight, if it is not 1;
--                      limits, zset limit -> when the last lease acquired under it ends; limit, string of an operator;
--                      waiters, zset token -> until when it counts as one. Of a caller that has waited also: signal of
--                      each level, list on which waiters block; waited and waits, zsets kind and name -> ms, callers
-- ARGV[1]     token    unique to this attempt
-- ARGV[2]     request  "<ttl> <waiting> <woken> <since> <weight>": timeout of the lease, ms; how long the caller counts as
--                      a waiter if it is refused, ms, 0 if it gives up then; 1 if this runs after a wait on a signal,
--                      else 0; when it was first refused, ms, or 0; slots to acquire per level
-- ARGV[3]     who      description of the caller
-- ARGV[4...]  levels   "<limit> <kind and name>" of each
-- returns     the fence, or {ms to wait at most, slots in use, limit in force, level that is full; of the lease that ends
--             first there: ms left, ms since it was acquired, the text stored about it; the next fence}
-- @include _waits

local token, who, levels = ARGV[1], ARGV[3], #ARGV - 3
local ttl, waiting, woken, since, weight = string.match(ARGV[2], "^(%d+) (%d+) (%d) (%d+) (%d+)$")
local waited, weight = since ~= "0", tonumber(weight)
-- @include _clock
local micros, now, now_text = read_clock()
local live, fence = "(" .. now_text, next_fence(KEYS[1], micros)
-- @include _used_slots
-- @include _limit_in_force
-- @include _remove_ended

local waits_for  -- the level
for level = 1, waited and levels or 0 do
    if tonumber(redis.call("ZSCORE", KEYS[6 * level + 2], token) or 0) > now then
        waits_for = level
    end
end
local gone = woken == "1" and not waits_for

local alone, stated, members, own_lease, full = {}, {}, {}, nil, nil
for level = 1, levels do
    local at = 6 * level - 3
    local holders, about, weights, limit = KEYS[at], KEYS[at + 1], KEYS[at + 2], nil
    stated[level], members[level] = string.match(ARGV[3 + level], "^(%d+) (.*)$")
    local used, ended, extra = used_slots(holders, weights)
    if used == 0 then
        alone[level], limit = true, tonumber(redis.call("GET", KEYS[at + 4])) or tonumber(stated[level])
    else
        limit = limit_in_force(KEYS[at + 3], KEYS[at + 4], tonumber(stated[level]))
        own_lease = tonumber(redis.call("ZSCORE", holders, token) or 0) > now and redis.call("HGET", about, token)
    end
    if ended then
        remove_ended(ended, extra, holders, about, weights)
    end
    if not own_lease and (gone or used + weight > limit) then
        full = { level, used, limit }
        break
    end
end

if full then
    local level, used, limit = unpack(full)
    local waiters = KEYS[6 * level + 2]
    if waits_for and waits_for ~= level then
        local before, signal = KEYS[6 * waits_for + 2], KEYS[6 * levels + 2 + waits_for]
        redis.call("ZREM", before, token)
        if woken == "1" and redis.call("EXISTS", before) == 1 then
            redis.call("RPUSH", signal, "1") -- pass on the wake-up
            redis.call("PEXPIRE", signal, 1000)
        end
    end
    if waiting ~= "0" and weight <= limit and not gone then
        redis.call("ZREMRANGEBYSCORE", waiters, "-inf", now)
        redis.call("ZADD", waiters, now + waiting, token)
        redis.call("PEXPIRE", waiters, waiting)
    elseif waits_for then
        redis.call("ZREM", waiters, token)
    end
-- @include _first_lease
    local left, since, first = first_lease(KEYS[6 * level - 3], KEYS[6 * level - 2])
    return { left, used, limit, level, left, since, first, tonumber(fence) }
end
if waited then
    for level = 1, levels do
        redis.call("ZREM", KEYS[6 * level + 2], token)
    end
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], members[levels], now - since, tonumber(fence))
end
if own_lease then
    fence = string.match(own_lease, "^%d+")
end
-- @include _set_end
-- @include _store_lease
for level = 1, levels do
    local at = 6 * level - 3
    store_lease(alone[level], stated[level], KEYS[2], members[level], unpack(KEYS, at, at + 3))
end
if not own_lease then
    redis.call("SET", KEYS[1], fence, "EX", 2592000)
end
return tonumber(fence)
