#!lua flags=allow-oom
-- Make the lease of a lock longer, or set how long it still lasts.
--
-- KEYS[1]  holder   string that begins with the holder's token
-- KEYS[2]  live     zset: kind and name -> when the lease ends, ms on the server's clock
-- ARGV[1]  token    of the lease
-- ARGV[2]  more     ms
-- ARGV[3]  how      0: so much is added; 1: so much is left from now on; 2: at least so much is left
-- ARGV[4]  most     a lease may last, ms
-- ARGV[5]  member   kind and name
-- returns  ms that the lease lasts now, 0 when this token does not hold the lock

local held = redis.call("GET", KEYS[1])
if not held or string.match(held, "^%S+") ~= ARGV[1] then
    return 0
end
local left, more = math.max(redis.call("PTTL", KEYS[1]), 0), tonumber(ARGV[2])
local wanted = { ["0"] = left + more, ["1"] = more, ["2"] = math.max(left, more) }
local lasting = math.min(wanted[ARGV[3]], tonumber(ARGV[4]))
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call("ZADD", KEYS[2], now + lasting, ARGV[5])
redis.call("PEXPIRE", KEYS[1], lasting)
return lasting
