#!lua flags=allow-oom
-- Take the rule of a caller away. Refusals that count towards a ban stay.
--
-- KEYS[1]  state     state of the caller, forgotten where its rates change
-- KEYS[2]  standing  string, see decide.lua
-- KEYS[3]  rules     zset: caller -> when its rule ends, ms
-- ARGV[1]  now       microseconds, for a clock of one's own; "" for the server's
-- ARGV[2]  who       hash of the caller, with which its label begins
-- returns  1 when it had one, 0 otherwise

-- @include _labelled

local clock = redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local rule, label = redis.call("GET", KEYS[2]) or "", labelled(KEYS[3], ARGV[2])
local kind = string.sub(rule, 1, 1)
if label then
    redis.call("ZREM", KEYS[3], label)
end
if not (kind == "x" or kind == "r" or kind == "b" and tonumber(string.match(rule, "%d+")) > now) then
    return 0
end
redis.call("DEL", KEYS[2])
if kind == "r" then
    redis.call("DEL", KEYS[1])
end
return 1
