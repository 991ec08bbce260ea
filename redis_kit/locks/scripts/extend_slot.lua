#!lua flags=allow-oom
-- Extend the lease of slots, or replace its TTL. A lost lease is not acquired again.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]     lease    string "<limits> <weight> ...", until the lease ends
-- KEYS[3...]  levels   two keys of each, the outermost first: holders, limits
-- ARGV[1]     token    of the lease
-- ARGV[2]     ttl      ms
-- ARGV[3]     mode     0: add the ttl; 1: replace the TTL by it; 2: let at least that much be left
-- ARGV[4]     max      longest TTL of a lease, ms
-- ARGV[5...]  members  kind and name of each level
-- returns     the new TTL of the lease, ms; 0 if this token holds no slot

local limits, weight = string.match(redis.call("GET", KEYS[2]) or "", "^(%S+) (%d+)")
if not limits then
    return 0
end
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local suffix = weight == "1" and "" or " " .. weight
local slots = ARGV[1] .. " " .. string.match(limits, "%d+$") .. suffix
local ends = tonumber(redis.call("ZSCORE", KEYS[#KEYS - 1], slots) or 0)
if ends <= now then
    return 0
end
local left, ttl = ends - now, tonumber(ARGV[2])
local wanted = { ["0"] = left + ttl, ["1"] = ttl, ["2"] = math.max(left, ttl) }
local new_ttl = math.min(wanted[ARGV[3]], tonumber(ARGV[4]))
local at, new_end = 3, now + new_ttl
for limit in string.gmatch(limits, "%d+") do
    redis.call("ZADD", KEYS[1], "GT", new_end, ARGV[(at + 7) / 2])
    redis.call("ZADD", KEYS[at], new_end, ARGV[1] .. " " .. limit .. suffix)
    redis.call("PEXPIREAT", KEYS[at], new_end, "GT")
    if redis.call("EXISTS", KEYS[at + 1]) == 1 then
        redis.call("ZADD", KEYS[at + 1], "GT", new_end, limit)
        redis.call("PEXPIREAT", KEYS[at + 1], new_end, "GT")
    end
    at = at + 2
end
redis.call("PEXPIREAT", KEYS[2], new_end - 1)
return new_ttl
