#!lua flags=allow-oom
-- Forget the calls of a caller, and with them a ban that they led to. An exemption or rates of its own stay.
--
-- KEYS[1]  state     state of the caller
-- KEYS[2]  standing  string, see decide.lua
-- KEYS[3]  rules     zset: caller -> when its ban ends
-- ARGV[1]  label     the caller as ``rules`` names it
-- returns  1 when there was anything to forget, 0 otherwise

local kind = string.sub(redis.call("GET", KEYS[2]) or "", 1, 1)
-- @check_types rules
local forgotten = redis.call("DEL", KEYS[1])
if kind == "b" or kind == "s" then
    forgotten = redis.call("DEL", KEYS[2]) + forgotten
    redis.call("ZREM", KEYS[3], ARGV[1])
end
return math.min(forgotten, 1)
