#!lua flags=allow-oom
-- Extend the lease of slots, or replace its TTL. A lost lease is not acquired again.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]     lease    string, until the lease ends
-- KEYS[3...]  levels   two keys of each, the outermost first: holders, limits
-- ARGV[1]     ttl      ms
-- ARGV[2]     mode     0: add the ttl; 1: replace the TTL by it; 2: let at least that much be left, and count no lost lease
-- ARGV[3]     max      longest TTL of a lease, ms
-- ARGV[4...]  levels   of each "<token> <limit>" with the weight, if it is not 1, as among the holders; kind and name
-- returns     the new TTL of the lease, ms; 0 if this token holds no slot

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ends = tonumber(redis.call("ZSCORE", KEYS[#KEYS - 1], ARGV[#KEYS]) or 0)
if ends <= now or redis.call("EXISTS", KEYS[2]) == 0 then
    if ARGV[2] ~= "2" then
-- @include _statistics
        count_in_history(KEYS[1], 0, 0, 0, 0, 1)
    end
    return 0
end
local left, ttl = ends - now, tonumber(ARGV[1])
local wanted = { ["0"] = left + ttl, ["1"] = ttl, ["2"] = math.max(left, ttl) }
local new_ttl = math.min(wanted[ARGV[2]], tonumber(ARGV[3]))
local new_end = now + new_ttl
for at = 3, #KEYS, 2 do
    local slots = ARGV[at + 1]
    redis.call("ZADD", KEYS[1], "GT", new_end, ARGV[at + 2])
    redis.call("ZADD", KEYS[at], new_end, slots)
    redis.call("PEXPIREAT", KEYS[at], new_end, "GT")
    if redis.call("EXISTS", KEYS[at + 1]) == 1 then
        redis.call("ZADD", KEYS[at + 1], "GT", new_end, (string.match(slots, " (%d+)")))
        redis.call("PEXPIREAT", KEYS[at + 1], new_end, "GT")
    end
end
redis.call("PEXPIREAT", KEYS[2], new_end - 1)
return new_ttl
