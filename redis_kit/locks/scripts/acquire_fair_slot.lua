#!lua
-- Acquire slots in the order of the queue: if the slots of all earlier tickets fit, too. See also acquire_slot.
--
-- KEYS[1]      live     zset: kind and name -> when the last lease ends at the latest; "fence" -> the last fence of this bucket
-- KEYS[2]      lease    string "<seconds> <micros>", the fence, and ARGV[1], until the lease ends
-- KEYS[3]      holders  zset: "<token> <limit>" and the weight, if it is not 1 -> when the lease ends
-- KEYS[4]      limits   zset: limit -> when the last lease acquired under it ends, if leases were acquired under several
-- KEYS[5]      limit    string of an operator
-- KEYS[6]      waiters  zset: ticket -> until when it counts, unless its process sends it again
-- KEYS[7]      queue    zset: ticket -> sequence number
-- KEYS[8...]   tickets  hash: ticket -> "<weight> <list on which its process waits>"; then waited and waits, as there
-- ARGV[1]      about    "<limit> <weight> <ttl> <who>", as in acquire_slot
-- ARGV[2]      ttl      timeout of the lease, ms
-- ARGV[3]      request  "<waiting> <woken> <since> <list>": as there, and the list on which the caller waits
-- ARGV[4]      slots    "<token> <limit>" with the weight, as among the holders; the token is its ticket too
-- ARGV[5]      member   kind and name
-- ARGV[6...]   mates    the weight, if it is not 1 or tickets follow: those of this process in its order, which count on, too
-- returns      the fence, or what acquire_slot returns, with the number of tickets before this one in place of the level
-- The lists of waiters are data here, not keys: each has the tag of these keys. At most 200 tickets are read.

local about, own, holders, limits, queue = ARGV[1], KEYS[2], KEYS[3], KEYS[4], KEYS[7]
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000
local ends, found = now + ARGV[2], redis.call("EXISTS", holders, limits, KEYS[5], queue)
-- Most callers find no lease and no queue. All below would cost them a tenth more.
if found == 0 and #KEYS == 8 and redis.call("ZADD", KEYS[1], "GT", "CH", micros, "fence", ends, ARGV[5]) == 2 then
    redis.call("ZADD", holders, ends, ARGV[4])
    if ARGV[6] then redis.call("ZINCRBY", holders, ARGV[6] - 1, "extra") end
    redis.call("PEXPIREAT", holders, ends)
    redis.call("SET", own, clock[1] .. " " .. clock[2] .. " " .. about, "PXAT", ends - 1)
    if micros % 16 == 0 then redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now) end  -- left behind by dead holders
    return micros
end
local waiters, tickets, waited, slots = KEYS[6], KEYS[8], #KEYS > 8, ARGV[4]
local weight, token, limit = tonumber(ARGV[6] or 1), string.match(slots, "^%w+"), tonumber(string.match(slots, " (%d+)"))
-- @include _store_slots

local function grant(held, other)
    local fence = next_fence(KEYS[1], ARGV[5])
    return store_lease(store_slots(slots, held, other, limit, holders, limits), fence)
end

-- @include _used_slots
-- @include _remove_ended
local used, ended, extra, first = used_slots(holders)
local most, other = limit_in_force(first, found == 1, limits, KEYS[5], limit)
if found == 1 and used > 0 and #ended == 0 and not waited and used + weight <= most then
    return grant(true, other)
end
local waiting, woken, since, list = string.match(ARGV[3], "^(%d+) (%d) (%d+) (.*)$")
-- @include _first_lease
-- @include _tickets

local function weight_of_first(count)
    local sum, _, stored = count > 200 and math.huge or 0, first_tickets(count)
    for _, ticket in ipairs(stored) do
        sum = sum + (string.match(ticket or "", "^%d+") or 1)
    end
    return sum
end

-- At the end; but if the ticket counted as dead before later ones of its process did, in front of those.
local function sequence(first_mate)
    local number = (redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0) + 1
    local behind = false
    for at = first_mate, #ARGV do
        local other = behind and redis.call("ZSCORE", queue, ARGV[at])
        number = math.min(number, other and other - 0.5 or number)
        behind = behind or ARGV[at] == token
    end
    return number
end

-- Put the token's ticket into the queue.
local function stand_in_queue(list, first_mate, ticket_ttl)
    redis.call("ZADD", queue, "NX", sequence(first_mate), token)
    redis.call("HSET", tickets, token, weight .. " " .. list)
    redis.call("ZADD", waiters, now + ticket_ttl, token)
    for _, key in ipairs({ waiters, queue, tickets }) do
        redis.call("PEXPIRE", key, ticket_ttl)
    end
end

-- @check_types queue, tickets, live
local own_lease = redis.call("EXISTS", own) == 1
local gone = woken == "1" and tonumber(redis.call("ZSCORE", waiters, token) or 0) <= now
for at = 7, gone and 0 or #ARGV do
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
elseif gone or used + weight_of_first(before) + weight > most then
    local waits = waiting ~= "0" and weight <= most and not gone
    if waits and (rank or not waited or #ARGV > 6) then -- a ticket that counted as dead needs those of its process
        stand_in_queue(list, 7, TICKET_TTL)
-- @include _note_waiter
        note_waiter(KEYS[1], ARGV[5], TICKET_TTL)
    elseif rank then
        remove_tickets({ token })
        changed = true
    end
    if waited and waiting .. woken == "00" then -- its time is up
-- @include _waits
        note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[5], now - since, micros, true)
    end
    if changed then
        wake_tickets(used, most)
    end
    local left, held_for, about = first_lease(first, own)
    local next_dead = redis.call("ZRANGE", waiters, 0, 0, "WITHSCORES")[2] or math.huge
    local later = math.max((redis.call("ZSCORE", KEYS[1], "fence") or 0) + 1, micros)
    return { math.min(left, next_dead - now), used, most, before, left, held_for, about, later }
end
remove_tickets(rank and { token } or {})
local granted = grant(used > 0, other)
if waited then
-- @include _waits
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[5], now - since, granted)
end
if changed then
    wake_tickets(used + weight, most)
end
return granted
