#!lua flags=no-writes
-- Read the rules of several identities, or the override for all identities.
--
-- KEYS[1...]  rules  strings: standings or an override, see decide.lua
-- ARGV[1]     now    microseconds for a custom clock; "" for the server's clock
-- returns     {now in microseconds; then for each key the rule or "", and when the key expires, ms}

local clock = redis.call("TIME")
local reply = {string.format("%.0f", tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2])}
for _, key in ipairs(KEYS) do
    reply[#reply + 1] = redis.call("GET", key) or ""
    reply[#reply + 1] = redis.call("PEXPIRETIME", key)
end
return reply
