#!lua
-- Acquire slots in the order of the queue: if the slots of all earlier tickets fit, too.
--
-- KEYS[1]       fence    string: the last fence of this bucket
-- KEYS[2]       live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[3]       holders  zset: token -> when its lease ends
-- KEYS[4]       about    hash: token -> "<fence> <since> <ttl> <weight> <who>"
-- KEYS[5]       weights  hash: token -> weight, if it is not 1
-- KEYS[6]       limits   zset: limit -> when the last lease acquired under it ends
-- KEYS[7]       limit    string of an operator
-- KEYS[8]       waiters  zset: ticket -> until when it counts, unless its process sends it again
-- KEYS[9]       queue    zset: ticket -> sequence number
-- KEYS[10...]   tickets  hash: ticket -> "<weight> <list on which its process waits>"; of a caller that has waited
--                        also: waited and waits, zsets kind and name -> ms in all, number of callers
-- ARGV[1]       token    unique to this attempt; its ticket too
-- ARGV[2]       ttl      timeout of the lease, ms
-- ARGV[3]       who      description of the caller
-- ARGV[4]       waiting  0 if the caller gives up when it is refused
-- ARGV[5]       woken    1 if this runs after a wait on the list, whether or not the caller is still alive; else 0
-- ARGV[6]       since    when the caller was first refused, ms on the server's clock; 0 if it was not
-- ARGV[7]       weight   slots to acquire
-- ARGV[8]       limit    how many slots there are
-- ARGV[9]       member   kind and name
-- ARGV[10]      list     on which the caller waits
-- ARGV[11...]   mates    tickets of the same process in its order, with its own, which count on, too; or none
-- returns       the fence, or {ms to wait at most, slots in use, limit in force, tickets before this one; of the lease
--               that ends first: ms left, ms since it was acquired, the text stored about it; the next fence}
--
-- The lists of waiters are data here, not keys: each has the tag of these keys. At most 200 tickets are read.
-- @include _waits

local token, ttl, who, weight = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[7])
local holders, about, weights, limits = KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local waiters, queue, tickets = KEYS[8], KEYS[9], KEYS[10]
-- @include _clock
local micros, now, now_text = read_clock()
local live, fence = "(" .. now_text, next_fence(KEYS[1], micros)
-- @include _used_slots
-- @include _limit_in_force
-- @include _remove_ended
-- @include _set_end
-- @include _store_lease
-- @include _first_lease
-- @include _tickets
-- @include _stand_in_queue

-- @check_types queue, tickets
local own_lease = redis.call("ZSCORE", holders, token)
own_lease = own_lease and tonumber(own_lease) > now and redis.call("HGET", about, token)
local used, ended, extra = used_slots(holders, weights)
local limit = limit_in_force(limits, KEYS[7], tonumber(ARGV[8]))
local gone = ARGV[5] == "1" and tonumber(redis.call("ZSCORE", waiters, token) or 0) <= now
for at = 11, gone and 0 or #ARGV do
    redis.call("ZADD", waiters, "XX", now + TICKET_TTL, ARGV[at])
end
local dead = redis.call("ZRANGEBYSCORE", waiters, "-inf", now, "LIMIT", 0, 200)
local changed = #dead > 0 or ended
remove_tickets(dead)
if ended then
    remove_ended(ended, extra, holders, about, weights)
end

local rank = redis.call("ZRANK", queue, token)
local before = rank or redis.call("ZCARD", queue)
if own_lease then
    fence, used = string.match(own_lease, "^%d+"), used - weight
elseif gone or used + weight_of_first(before) + weight > limit then
    local waits = ARGV[4] ~= "0" and weight <= limit and not gone
    if waits and (rank or ARGV[6] == "0" or #ARGV > 10) then -- a ticket that counted as dead needs those of its process
        stand_in_queue(ARGV[10], 11, TICKET_TTL)
    elseif rank then
        remove_tickets({ token })
        changed = true
    end
    if changed then
        wake_tickets(used, limit)
    end
    local left, since, first = first_lease(holders, about)
    local next_dead = redis.call("ZRANGE", waiters, 0, 0, "WITHSCORES")[2] or math.huge
    return { math.min(left, next_dead - now), used, limit, before, left, since, first, tonumber(fence) }
end

if rank then
    remove_tickets({ token })
end
if ARGV[6] ~= "0" then
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[9], now - ARGV[6], tonumber(fence))
end
store_lease(used == 0, ARGV[8], KEYS[2], ARGV[9], holders, about, weights, limits)
if not own_lease then
    redis.call("SET", KEYS[1], fence, "EX", 2592000)
end
if changed then
    wake_tickets(used + weight, limit)
end
return tonumber(fence)
