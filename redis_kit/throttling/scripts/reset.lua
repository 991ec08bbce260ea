#!lua flags=allow-oom
-- Forget the calls of an identity, and its automatic ban. An exemption or an override of the identity stays.
--
-- KEYS[1]  state     state of the identity
-- KEYS[2]  standing  string, see decide.lua
-- KEYS[3]  rules     zset: entry -> when the rule ends, ms
-- ARGV[1]  hash      of the identity, with which its entry begins
-- ARGV[2]  entry     of the identity; "" if only its hash is known
-- returns  1 if there was anything to forget, 0 otherwise

-- @include _entry

local state, standing, rules = KEYS[1], KEYS[2], KEYS[3]
local kind = string.sub(redis.call("GET", standing) or "", 1, 1)
-- @check_types rules
local forgotten = redis.call("DEL", state)
if kind == "b" or kind == "s" then
    forgotten = redis.call("DEL", standing) + forgotten
    local removed = redis.call("ZREM", rules, ARGV[2])
    if removed == 0 and kind == "b" then redis.call("ZREM", rules, entry_of(rules, ARGV[1]) or "") end
end
return math.min(forgotten, 1)
