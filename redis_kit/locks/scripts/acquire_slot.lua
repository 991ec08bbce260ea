#!lua
-- Acquire slots of a semaphore and of the ones around it, or none; again if this very attempt has them.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms; "fence" -> the bucket's last fence
-- KEYS[2]     lease    string "<seconds> <micros>", the fence, and ARGV[1], until the lease ends; the key ends with the token
-- KEYS[3...]  levels   four keys of each, the outermost first: holders, zset "<token> <limit>" and the weight, if it is
--                      not 1 -> when the lease ends; limits, zset limit -> when the last lease acquired under it ends, if
--                      leases were acquired under several; limit, string of an operator; waiters, zset token -> until
--                      when it counts as one. Of a caller that has waited also: signal of each level, list on which
--                      waiters block; waited and waits, zsets kind and name -> ms, callers
-- ARGV[1]     about    "<limits> <weight> <ttl> <who>": the limit that the caller states for each level, with commas between;
--                      slots to acquire per level; timeout of the lease, ms; description of the caller
-- ARGV[2]     ttl      ms
-- ARGV[3]     request  "<waiting> <woken> <since>": how long the caller counts as a waiter if it is refused, ms, 0 if it
--                      gives up then; 1 if this runs after a wait on a signal, else 0; since when it waits, ms, or 0
-- ARGV[4...]  levels   of each "<token> <limit>" with the weight, as among the holders, where the token is unique to this
--                      attempt; kind and name. Then the weight, if it is not 1
-- returns     the fence, or {ms to wait at most, slots in use, limit in force, level that is full; of the lease that ends
--             first there: ms left, ms since it was acquired, the text stored about it; the next fence}

local live, own, holders, limits, stored = unpack(KEYS)
local about, ttl, _, slots, name, is_heavy = unpack(ARGV)
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000
local ends, found = now + ttl, nil
-- Most callers find no lease on the only level. All below would cost them a tenth more.
if #KEYS == 6 and not is_heavy then
    found = redis.call("EXISTS", holders, limits, stored)
    if found == 0 and redis.call("ZADD", live, "GT", "CH", micros, "fence", ends, name) == 2 then
        redis.call("ZADD", holders, ends, slots)
        redis.call("PEXPIREAT", holders, ends)
        redis.call("SET", own, clock[1] .. " " .. clock[2] .. " " .. about, "PXAT", ends - 1)
        if micros % 16 == 0 then redis.call("ZREMRANGEBYSCORE", live, "-inf", now) end  -- left behind by dead holders
        return micros
    end
end

local levels, waits_for, gone, token = math.floor((#ARGV - 3) / 2), nil, nil, nil  -- a level; true if it stopped waiting
local waited, weight = #KEYS > 4 * levels + 2, tonumber(ARGV[2 * levels + 4] or 1)
if waited then
    token = string.match(slots, "^%w+")
    for level = 1, levels do
        if tonumber(redis.call("ZSCORE", KEYS[4 * level + 2], token) or 0) > now then
            waits_for = level
        end
    end
    gone = string.match(ARGV[3], " (%d)") == "1" and not waits_for
end

local held, others, stated, full = {}, {}, {}, nil
for level = 1, levels do
    local holders, limits, stored = KEYS[4 * level - 1], KEYS[4 * level], KEYS[4 * level + 1]
    found = levels == 1 and found or redis.call("EXISTS", holders, limits, stored)
    held[level] = found > 0
    if gone or found > 0 then
-- @include _used_slots
-- @include _remove_ended
        stated[level] = tonumber(string.match(ARGV[2 * level + 2], " (%d+)"))
        local used, ended, extra, first = used_slots(holders)
        local limit, other = limit_in_force(first, found == 1, limits, stored, stated[level])
        remove_ended(used, ended, extra, holders, limits)
        held[level], others[level] = used > 0, other
        if (gone or used + weight > limit) and redis.call("EXISTS", own) == 0 then
            full = { level, used, limit, first }
            break
        end
    end
end

if full then
    token = token or string.match(slots, "^%w+")
-- @include _first_lease
-- @include _note_waiter
    local level, used, limit, first = unpack(full)
    local waiting, woken, since = string.match(ARGV[3], "^(%d+) (%d) (%d+)")
    local waits = waiting ~= "0" and weight <= limit and not gone
    local later = math.max((redis.call("ZSCORE", KEYS[1], "fence") or 0) + 1, micros)
    local waiters, before = KEYS[4 * level + 2], waits_for and KEYS[4 * waits_for + 2]
    -- It waits no longer on the level before, whose wake-up is passed on.
    if before and before ~= waiters then
        redis.call("ZREM", before, token)
        if woken == "1" and redis.call("EXISTS", before) == 1 then
            local signal = KEYS[4 * levels + 2 + waits_for]
            redis.call("RPUSH", signal, "1")
            redis.call("PEXPIRE", signal, 1000)
        end
    end
    if waits then
        redis.call("ZREMRANGEBYSCORE", waiters, "-inf", now)
        redis.call("ZADD", waiters, now + waiting, token)
        redis.call("PEXPIRE", waiters, waiting)
        note_waiter(KEYS[1], ARGV[2 * level + 3], waiting)
    elseif before then
        redis.call("ZREM", waiters, token)
    end
    if not waits and waited and waiting .. woken == "00" then -- its time is up
-- @include _waits
        note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[2 * levels + 3], now - since, micros, true)
    end
    local left, held_for, about = first_lease(first, own)
    return { left, used, limit, level, left, held_for, about, later }
end

-- @include _store_slots
local is_new, member = nil, ARGV[2 * levels + 3]
local fence = next_fence(live, member)
for level = 1, levels do
    local slots, holders, limits = ARGV[2 * level + 2], KEYS[4 * level - 1], KEYS[4 * level]
    is_new = store_slots(slots, held[level], others[level], stated[level], holders, limits)
    if level < levels then
        redis.call("ZADD", live, "GT", ends, ARGV[2 * level + 3])
    end
end
if waited then
-- @include _waits
    for level = 1, levels do
        redis.call("ZREM", KEYS[4 * level + 2], token)
    end
    local since = string.match(ARGV[3], "%d+$")
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], member, now - since, micros)
end
return store_lease(is_new, fence)
