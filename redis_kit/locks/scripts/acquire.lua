#!lua
-- Acquire a lock that is free, that is reserved for the caller, or that this very attempt has acquired before.
--
-- KEYS[1]  holder   string "<token> <who>", a new line, "<seconds> <micros> <ttl>" while held, and a "+" if callers may wait;
--          "~<baton>" while reserved
-- KEYS[2]  live     zset: kind and name -> when the lease ends, ms on the server's clock; "fence" -> the last fence
-- KEYS[3]  waiters  zset: token -> until when it counts as a waiter, ms
-- KEYS[4...]  signal, list with the baton until a waiter has popped it; of a caller that has waited also:
--          waited and waits, zsets: kind and name -> ms that callers have waited, and how many of them
-- ARGV[1]  caller   "<token> <who>": unique to this attempt, and a description of the caller
-- ARGV[2]  ttl      timeout of the lease, ms
-- ARGV[3]  member   kind and name
-- ARGV[4]  waiting  how long the caller counts as a waiter if it is refused, ms; 0 if it gives up then
-- ARGV[5]  since    when a caller that was refused began to wait, ms on the server's clock; missing if it was not
-- ARGV[6]  woken    "1" if this runs after a wait on the signal, whether or not the caller is still alive; else "0"
-- returns  the fence, or {ms left of the lease, ms since it was acquired, its holder, the next fence}
--
-- The fence is the server's clock in microseconds, or more: it grows even after the loss of all data. It is stored in
-- seconds and microseconds, since the clock gives them so.

local ttl, waiting_since = ARGV[2], ARGV[5]
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = (micros - micros % 1000) / 1000

local fence, woken, token, gone, held = micros, ARGV[6] == "1", waiting_since and string.match(ARGV[1], "^%w+")
if woken then
    gone = tonumber(redis.call("ZSCORE", KEYS[3], token) or 0) < now
    held = redis.call("GET", KEYS[1])
else
    local stored = ARGV[1] .. "\n" .. clock[1] .. " " .. clock[2] .. " " .. ttl .. (waiting_since and "+" or "")
    held = redis.call("SET", KEYS[1], stored, "NX", "GET", "PX", ttl)
end
if held or gone then
    local holder, who, seconds, rest, mark = string.match(held or "", "^(%w+) ([^\n]*)\n(%d+) (%d+) %d+(%+?)$")
    local since = holder and seconds * 1000000 + rest
    if holder and not gone and string.find(ARGV[1], holder, 1, true) == 1 then
        redis.call("ZADD", KEYS[2], now + ttl, ARGV[3])
        redis.call("PEXPIRE", KEYS[1], ttl)
        return since
    end
    local baton = not (gone or holder) and string.match(held, "^~(.*)$")
    if not (baton and (woken or redis.call("LPOP", KEYS[4]) == baton)) then
        local last = redis.call("ZSCORE", KEYS[2], "fence") or 0
        if ARGV[4] ~= "0" and not gone then
            redis.call("ZADD", KEYS[3], now + ARGV[4], token or string.match(ARGV[1], "^%w+"))
            redis.call("PEXPIRE", KEYS[3], ARGV[4])
-- @include _note_waiter
            note_waiter(KEYS[2], ARGV[3], ARGV[4])
            if mark == "" then
                redis.call("APPEND", KEYS[1], "+")
            end
        elseif waiting_since then
            redis.call("ZREM", KEYS[3], token)
            if not woken then -- its time is up
-- @include _waits
                note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[3], now - waiting_since, micros, true)
            end
        end
        local left = redis.call("PTTL", KEYS[1])
        local held_for = since and math.max(now - math.floor(since / 1000), 0) or 0
        return { left < 0 and 1000 or left, held_for, who or "", math.max(last + 1, micros) }
    end
end

local changed = redis.pcall("ZADD", KEYS[2], "GT", "CH", now + ttl, ARGV[3], micros, "fence")
if type(changed) == "table" then
    if not held then
        redis.call("DEL", KEYS[1])
    end
    return changed
end
if changed ~= 2 then -- the clock was set back, or the last fence is of this microsecond
    fence = redis.call("ZSCORE", KEYS[2], "fence") + 1
    redis.call("ZADD", KEYS[2], now + ttl, ARGV[3], fence, "fence")
end
if held or woken or changed ~= 2 then
    local lease = string.format("%s\n%d %d %s+", ARGV[1], math.floor(fence / 1000000), fence % 1000000, ttl)
    redis.call("SET", KEYS[1], lease, "PX", ttl)
end
if fence % 16 == 0 then -- remove what dead holders left behind
    redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
end
if waiting_since then
-- @include _waits
    redis.call("ZREM", KEYS[3], token)
    note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[3], now - waiting_since, fence)
end
return fence
