#!lua
-- Acquire a lock of redis-py that is free, or that this very call has acquired before.
--
-- KEYS[1]  name   string: the holder's token, as redis-py stores it
-- KEYS[2]  fence  string "<last fence> <last call that changed something> <token of our holder>"
-- ARGV[1]  token  of the holder to be
-- ARGV[2]  call   unique to this call; a client that repeats the command sends the same
-- ARGV[3]  ttl    timeout of the lease, ms
-- returns  the fence, 0 if another holds it
--
-- Tokens need not be unique, since redis-py lets callers choose them; so a repeated request is recognised by its call.
-- The fence is the server's clock in microseconds, or more. It is kept for an hour longer than the lease: that is how
-- far back the clock may be set.

local held = redis.call("GET", KEYS[1])
local last, call = string.match(redis.call("GET", KEYS[2]) or "", "^(%d+) (%S+) ")
if held and held == ARGV[1] and call == ARGV[2] then
    redis.call("PEXPIRE", KEYS[1], ARGV[3])
    return tonumber(last)
end
if held then
    return 0
end

local clock = redis.call("TIME")
local fence = math.max((tonumber(last) or 0) + 1, clock[1] * 1000000 + clock[2])
local state = string.format("%.0f ", fence) .. ARGV[2] .. " " .. ARGV[1]
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3])
redis.call("SET", KEYS[2], state, "PX", string.format("%.0f", ARGV[3] + 3600000))
return fence
