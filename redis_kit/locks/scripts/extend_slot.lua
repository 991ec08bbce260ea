#!lua flags=allow-oom
-- Extend the lease of slots, or replace its TTL. A lost lease is not acquired again.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[2...]  levels   four keys of each, the outermost first: holders, about, weights, limits
-- ARGV[1]     token    of the lease
-- ARGV[2]     ttl      ms
-- ARGV[3]     mode     0: add the ttl; 1: replace the TTL by it; 2: let at least that much be left
-- ARGV[4]     max      longest TTL of a lease, ms
-- ARGV[5...]  levels   "<limit> <kind and name>" of each
-- returns     the new TTL of the lease, ms; 0 if this token holds no slot

local token = ARGV[1]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @include _set_end

local ends = tonumber(redis.call("ZSCORE", KEYS[#KEYS - 3], token) or 0)
if ends <= now then
    return 0
end
local left, ttl = ends - now, tonumber(ARGV[2])
local wanted = { ["0"] = left + ttl, ["1"] = ttl, ["2"] = math.max(left, ttl) }
local new_ttl = math.min(wanted[ARGV[3]], tonumber(ARGV[4]))
for at = 2, #KEYS, 4 do
    local limit, member = string.match(ARGV[(at + 18) / 4], "^(%d+) (.*)$")
    set_end(now + new_ttl, false, 1, limit, KEYS[1], member, unpack(KEYS, at, at + 3))
end
return new_ttl
