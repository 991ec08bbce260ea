#!lua flags=allow-oom
-- Extend the lease of a lock of redis-py, or let it start again. It never ends the lease.
--
-- KEYS[1]  name     string: the holder's token
-- KEYS[2]  fence    string "<last fence> <last call that changed something> <token of our holder>"
-- ARGV[1]  token    of the lease
-- ARGV[2]  ttl      ms; may be negative if it is added
-- ARGV[3]  replace  "1" or missing if it replaces the TTL, "0" if it is added
-- ARGV[4]  call     unique to this call, so that a repeated command adds nothing; missing if it replaces the TTL
-- returns  1, 0 if this token does not hold the lock, or ARGV[3] is there and the lock does not expire, -1 if it would end at once
--
-- A caller may also give the name and two or three arguments alone, which are those of redis-py's scripts.

local held = redis.call("GET", KEYS[1])
local left = redis.call("PTTL", KEYS[1])
if held ~= ARGV[1] or ARGV[3] and left < 0 then
    return 0
end
local last, call, token = string.match(KEYS[2] and redis.call("GET", KEYS[2]) or "", "^(%d+) (%S+) (.*)$")
if call and call == ARGV[4] then
    return 1
end
local new_ttl = (ARGV[3] == "0" and left or 0) + ARGV[2]
if new_ttl <= 0 then
    return -1
end

redis.call("PEXPIRE", KEYS[1], string.format("%.0f", new_ttl))
if last then
    local state = last .. " " .. (ARGV[4] or call) .. " " .. token
    redis.call("SET", KEYS[2], state, "PX", string.format("%.0f", new_ttl + 3600000))
end
return 1
