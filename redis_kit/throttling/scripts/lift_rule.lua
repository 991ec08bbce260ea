#!lua flags=allow-oom
-- Remove the rule of an identity. Refusals that count towards a ban stay.
--
-- KEYS[1]  state     state of the identity, deleted if its rates change
-- KEYS[2]  standing  string, see decide.lua
-- KEYS[3]  rules     zset: entry -> when the rule ends, ms
-- ARGV[1]  now       microseconds for a custom clock; "" for the server's clock
-- ARGV[2]  hash      of the identity, with which its entry begins
-- ARGV[3]  entry     of the identity; "" if only its hash is known
-- returns  1 if there was a rule, 0 otherwise

-- @include _entry

local clock = redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local rule, entry = redis.call("GET", KEYS[2]) or "", entry_of(KEYS[3], ARGV[2], ARGV[3])
local kind = string.sub(rule, 1, 1)
if entry then
    redis.call("ZREM", KEYS[3], entry)
end
if not (kind == "x" or kind == "r" or kind == "b" and tonumber(string.match(rule, "%d+")) > now) then
    return 0
end
redis.call("DEL", KEYS[2])
if kind == "r" then
    redis.call("DEL", KEYS[1])
end
return 1
