#!lua flags=no-writes
-- Read the rules of some callers, or that for everybody.
--
-- KEYS[1...]  rules  strings: standings or an override, see decide.lua
-- ARGV[1]     now    microseconds, for a clock of one's own; "" for the server's
-- returns     {now in microseconds; then of each the rule or "", and when its key expires, ms}

local clock = redis.call("TIME")
local reply = {string.format("%.0f", tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2])}
for _, key in ipairs(KEYS) do
    reply[#reply + 1] = redis.call("GET", key) or ""
    reply[#reply + 1] = redis.call("PEXPIRETIME", key)
end
return reply
