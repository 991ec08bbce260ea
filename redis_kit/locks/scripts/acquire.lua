#!lua
-- Acquire a lock that is free, that is reserved for the caller, or that this very attempt has acquired before.
--
-- KEYS[1]  holder   string "<token> <fence> <since> <ttl> <who>" while held, "~<baton>" while reserved
-- KEYS[2]  fence    string: the last fence of this bucket
-- KEYS[3]  live     zset: kind and name -> when the lease ends, ms on the server's clock
-- KEYS[4]  waiters  zset: token -> until when it counts as a waiter, ms
-- KEYS[5...]  signal, list with the baton until a waiter has popped it; of a caller that has waited also:
--          waited and waits, zsets: kind and name -> ms that callers have waited, and how many of them
-- ARGV[1]  token    unique to this attempt
-- ARGV[2]  ttl      timeout of the lease, ms
-- ARGV[3]  member   kind and name
-- ARGV[4]  who      description of the caller
-- ARGV[5]  waiting  how long the caller counts as a waiter if it is refused, ms; 0 if it gives up then
-- ARGV[6]  woken    1 if this runs after a wait on the signal, whether or not the caller is still alive; else 0
-- ARGV[7]  since    when the caller was first refused, ms on the server's clock; 0 if it was not
-- returns  the fence, or {ms left of the lease, ms since it was acquired, its holder, the next fence}
--
-- The fence is the server's clock in microseconds, or more: it grows even after the loss of all data.
-- @include _waits

local token, ttl, member = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local fence = math.max((tonumber(redis.call("GET", KEYS[2])) or 0) + 1, micros)
local number

local held = redis.call("GET", KEYS[1])
local gone = ARGV[6] == "1" and tonumber(redis.call("ZSCORE", KEYS[4], token) or 0) < now
if held or gone then
    local holder, held_fence, since, who = string.match(held or "", "^(%S+) (%d+) (%d+) %d+ (.*)$")
    local baton = string.match(held or "", "^~(.*)$")
    local chosen = baton and (ARGV[6] == "1" or redis.call("LPOP", KEYS[5]) == baton)
    if gone or not (holder == token or chosen) then
        if ARGV[5] ~= "0" and not gone then
            redis.call("ZADD", KEYS[4], now + ARGV[5], token)
            redis.call("PEXPIRE", KEYS[4], ARGV[5])
        elseif ARGV[7] ~= "0" then
            redis.call("ZREM", KEYS[4], token)
        end
        local left = redis.call("PTTL", KEYS[1])
        return { left < 0 and 1000 or left, now - (tonumber(since) or now), who or "", fence }
    end
    number = held_fence
end

if fence % 16 == 0 then  -- remove what dead holders left behind
    redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", now)
end
redis.call("ZADD", KEYS[3], now + ttl, member)
redis.call("SET", KEYS[1], string.format("%s %.0f %.0f %d %s", token, number or fence, now, ttl, ARGV[4]), "PX", ttl)
redis.call("SET", KEYS[2], string.format("%.0f", fence), "EX", 2592000)
if ARGV[7] ~= "0" then
    redis.call("ZREM", KEYS[4], token)
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], member, now - ARGV[7], fence)
end
return tonumber(number) or fence
