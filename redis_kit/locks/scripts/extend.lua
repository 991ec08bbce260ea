#!lua flags=allow-oom
-- Extend the lease of a lock, or replace its TTL.
--
-- KEYS[1]  holder   string that begins with the holder's token
-- KEYS[2]  live     zset: kind and name -> when the lease ends, ms on the server's clock
-- ARGV[1]  token    of the lease
-- ARGV[2]  ttl      ms
-- ARGV[3]  mode     0: add the ttl; 1: replace the TTL by it; 2: let at least that much be left, and count no lost lease
-- ARGV[4]  max      longest TTL of a lease, ms
-- ARGV[5]  member   kind and name
-- returns  the new TTL of the lease, ms; 0 if this token does not hold the lock

local held = redis.call("GET", KEYS[1])
if not held or string.find(held, ARGV[1], 1, true) ~= 1 then
    if ARGV[3] ~= "2" then
-- @include _statistics
        count_in_history(KEYS[2], 0, 0, 0, 0, 1)
    end
    return 0
end
local new_ttl = tonumber(ARGV[2])
if ARGV[3] ~= "1" then
    local left = math.max(redis.call("PTTL", KEYS[1]), 0)
    new_ttl = ARGV[3] == "0" and left + new_ttl or math.max(left, new_ttl)
end
new_ttl = math.min(new_ttl, ARGV[4])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call("ZADD", KEYS[2], now + new_ttl, ARGV[5])
redis.call("PEXPIRE", KEYS[1], new_ttl)
return new_ttl
