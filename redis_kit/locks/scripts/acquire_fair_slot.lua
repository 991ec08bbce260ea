#!lua
-- Acquire slots in the order of the queue: if the slots of all earlier tickets fit, too.
--
-- KEYS[1]      live     zset: kind and name -> when the last lease ends at the latest; "fence" -> the last fence of this bucket
-- KEYS[2]      lease    string "<limit> <weight> <seconds> <micros> <ttl> <who>", until the lease ends
-- KEYS[3]      holders  zset: "<token> <limit>" and the weight, if it is not 1 -> when the lease ends
-- KEYS[4]      limits   zset: limit -> when the last lease acquired under it ends, if leases were acquired under several
-- KEYS[5]      limit    string of an operator
-- KEYS[6]      waiters  zset: ticket -> until when it counts, unless its process sends it again
-- KEYS[7]      queue    zset: ticket -> sequence number
-- KEYS[8...]   tickets  hash: ticket -> "<weight> <list on which its process waits>"; of a caller that has waited
--                       also: waited and waits, zsets kind and name -> ms in all, number of callers
-- ARGV[1]      token    unique to this attempt; its ticket too
-- ARGV[2]      ttl      timeout of the lease, ms
-- ARGV[3]      weight   slots to acquire
-- ARGV[4]      who      description of the caller
-- ARGV[5]      request  "<waiting> <woken> <since> <list>": as in acquire_slot, and the list on which the caller waits
-- ARGV[6]      limit    how many slots there are
-- ARGV[7]      member   kind and name
-- ARGV[8...]   mates    tickets of the same process in its order, with its own, which count on, too; or none
-- returns      the fence, or {ms to wait at most, slots in use, limit in force, tickets before this one; of the lease
--              that ends first: ms left, ms since it was acquired, the text stored about it; the next fence}
-- The lists of waiters are data here, not keys: each has the tag of these keys. At most 200 tickets are read.

local token, ttl, slots, who = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local own, holders, limits, weight = KEYS[2], KEYS[3], KEYS[4], tonumber(slots)
local waiters, queue, tickets, waited = KEYS[6], KEYS[7], KEYS[8], #KEYS > 8
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local ends = now + ttl
-- @include _next_fence
-- @include _store_slots
-- @include _store_lease

local function grant(held, other)
    local fence = next_fence(KEYS[1], ARGV[7])
    return store_lease(store_slots(held, other, ARGV[6], holders, limits), ARGV[6], fence)
end

local found = redis.call("EXISTS", holders, limits, KEYS[5], queue)
if found == 0 and not waited then
    return grant(false)
end
-- @include _used_slots
-- @include _limit_in_force
-- @include _remove_ended
local used, ended, extra, first = used_slots(holders)
local limit, other = limit_in_force(first, found == 1, limits, KEYS[5], tonumber(ARGV[6]))
if found == 1 and used > 0 and #ended == 0 and not waited and used + weight <= limit then
    return grant(true, other)
end
local waiting, woken, since, list = string.match(ARGV[5], "^(%d+) (%d) (%d+) (.*)$")
-- @include _first_lease
-- @include _tickets
-- @include _stand_in_queue
-- @include _waits

-- @check_types queue, tickets, live
local own_lease = redis.call("EXISTS", own) == 1
local gone = woken == "1" and tonumber(redis.call("ZSCORE", waiters, token) or 0) <= now
for at = 8, gone and 0 or #ARGV do
    redis.call("ZADD", waiters, "XX", now + TICKET_TTL, ARGV[at])
end
local dead = redis.call("ZRANGEBYSCORE", waiters, "-inf", now, "LIMIT", 0, 200)
local changed = #dead > 0 or #ended > 0
remove_tickets(dead)
remove_ended(used, ended, extra, holders, limits)

local rank = redis.call("ZRANK", queue, token)
local before = rank or redis.call("ZCARD", queue)
if own_lease then
    used = used - weight
elseif gone or used + weight_of_first(before) + weight > limit then
    local waits = waiting ~= "0" and weight <= limit and not gone
    if waits and (rank or not waited or #ARGV > 7) then -- a ticket that counted as dead needs those of its process
        stand_in_queue(list, 8, TICKET_TTL)
    elseif rank then
        remove_tickets({ token })
        changed = true
    end
    if changed then
        wake_tickets(used, limit)
    end
    local left, since, about = first_lease(first, own)
    local next_dead = redis.call("ZRANGE", waiters, 0, 0, "WITHSCORES")[2] or math.huge
    local later = math.max((redis.call("ZSCORE", KEYS[1], "fence") or 0) + 1, micros)
    return { math.min(left, next_dead - now), used, limit, before, left, since, about, later }
end
if rank then
    remove_tickets({ token })
end
local granted = grant(used > 0, other)
if waited then
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[7], now - since, granted)
end
if changed then
    wake_tickets(used + weight, limit)
end
return granted
