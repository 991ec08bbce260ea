#!lua
-- Store the schedules that the code of a process declares, and have those planned again that are new or have changed.
-- One script: which of two releases of the code wins is decided by when the server saw them first.
--
-- @keys due, names, code, versions
-- ARGV[1]     version
-- ARGV[2]     alive     ms after which a version counts as replaced
-- ARGV[3]     longest   ms after which a version is forgotten
-- ARGV[4]     schedule  the first one's name
-- ARGV[5...]  others    its definition, then name and definition of each further one
-- returns     how many were planned again
--
-- A release that was deployed later wins while it lives, even if a process of the other one starts again. Processes of
-- that one declare their schedules again when it has ended.

local version, alive, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @check_types due, names, code, versions
local others, stored = {}, redis.call("HGETALL", versions)
for at = 1, #stored, 2 do
    local since, last = string.match(stored[at + 1], "^(%d+) (%d+)$")
    if since and now - last > longest then
        redis.call("HDEL", versions, stored[at])
    elseif since and now - last <= alive then
        others[stored[at]] = tonumber(since)
    end
end
local first = others[version] or now
others[version] = nil
redis.call("HSET", versions, version, string.format("%.0f %.0f", first, now))

local planned = 0
for at = 4, #ARGV, 2 do
    local name, definition = ARGV[at], ARGV[at + 1]
    local author, old = string.match(redis.call("HGET", code, name) or "", "^([^\n]*)\n(.*)$")
    if (others[author or ""] or 0) <= first then
        redis.call("HSET", code, name, version .. "\n" .. definition)
        redis.call("ZADD", names, 0, name)
        if old ~= definition or not redis.call("ZSCORE", due, name) then
            redis.call("ZADD", due, 0, name)
            planned = planned + 1
        end
    end
end
return planned
