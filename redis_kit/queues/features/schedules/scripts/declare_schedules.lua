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
-- A release that was deployed later wins while it lives, even if a process of the other one starts again.

local version, alive, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @check_types due, names, code, versions
local seen, stored = {}, redis.call("HGETALL", versions)
for at = 1, #stored, 2 do
    local first, last = string.match(stored[at + 1], "^(%d+) (%d+)$")
    if first and now - last > longest then
        redis.call("HDEL", versions, stored[at])
    elseif first then
        seen[stored[at]] = {first = tonumber(first), last = tonumber(last)}
    end
end
local own = seen[version]
local first = own and now - own.last <= alive and own.first or now
redis.call("HSET", versions, version, string.format("%.0f %.0f", first, now))
seen[version] = nil

local planned = 0
for at = 4, #ARGV, 2 do
    local name, definition = ARGV[at], ARGV[at + 1]
    local line, old = string.match(redis.call("HGET", code, name) or "\n", "^([^\n]*)\n(.*)$")
    local author, others = string.match(line or "", "^%S+"), {}
    for other in string.gmatch(line or "", "%S+") do
        if seen[other] then
            others[#others + 1] = other
        end
    end
    local writer = author and seen[author]
    local loses = writer and now - writer.last <= alive and writer.first > first
    table.insert(others, loses and 2 or 1, version)
    redis.call("HSET", code, name, table.concat(others, " ") .. "\n" .. (loses and old or definition))
    redis.call("ZADD", names, 0, name)
    if not redis.call("ZSCORE", due, name) or not loses and old ~= definition then
        redis.call("ZADD", due, 0, name)
        planned = planned + 1
    end
end
return planned
