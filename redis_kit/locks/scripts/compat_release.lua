#!lua flags=allow-oom
-- Release a lock of redis-py.
--
-- KEYS[1]  name         string: the holder's token
-- KEYS[2]  fence        string "<last fence> <last call that changed something> <token of our holder>"
-- ARGV[1]  token        of the lease
-- ARGV[2]  call         unique to this call
-- ARGV[3]  acquired_by  call that must have acquired it; empty for any call
-- ARGV[4]  fence        that the lease must have; empty for any fence
-- returns  1 if the lock was released, 0 if this token does not hold it
--
-- A caller may also give the name and the token alone, which are those of redis-py's script.

local held = redis.call("GET", KEYS[1])
local last, call, token = string.match(KEYS[2] and redis.call("GET", KEYS[2]) or "", "^(%d+) (%S+) (.*)$")
if held ~= ARGV[1] then
    local done = call and call == ARGV[2] and token == ""
    return done and 1 or 0
end
local other_call = (ARGV[3] or "") ~= "" and call ~= ARGV[3]
local other_fence = (ARGV[4] or "") ~= "" and last ~= ARGV[4]
if other_call or other_fence then
    return 0
end

redis.call("DEL", KEYS[1])
if KEYS[2] and ARGV[2] then
    redis.call("SET", KEYS[2], (last or "0") .. " " .. ARGV[2] .. " ", "PX", 3600000)
end
return 1
